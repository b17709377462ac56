"""Tokenizers with the ids of the published ones, and a few tokens that are whole answers.

A model of random weights draws tokens, not kernels. So that its answers are compiled, run and rewarded all the same,
every program is a token, in as many copies as `checkpoints` has directions to draw from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tokenizers import Tokenizer, pre_tokenizers

from dice.data.tokenizer import SMALL_SPECIALS, train_tokenizer

FIRST_WORD = 100
"""Below it some families have control tokens."""
FIRST_ANSWER = 4000
WORDS = 1024


def train_words(texts: Sequence[str]) -> dict[str, Any]:
    """A byte-level BPE of `texts` without control tokens, as tokenizer.json has it."""
    small = json.loads(train_tokenizer(texts, WORDS).backend.to_str())
    words = [word for word in small["model"]["vocab"] if word not in SMALL_SPECIALS]
    small["model"]["vocab"] = {word: FIRST_WORD + place for place, word in enumerate(words)}
    return small


def vocabulary(words: Mapping[str, Any], answers: Sequence[str], copies: int, control: Mapping[int, str]) -> Tokenizer:
    """The words, `control` tokens at their ids, and `copies` of each answer from `FIRST_ANSWER` on.

    The answers of one copy lie beside each other. No text is encoded with an answer's token; it is only drawn.
    """
    ids = dict(words["model"]["vocab"])
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for copy in range(copies):
        for place, answer in enumerate(answers):
            text = f"\n```python\n{answer.strip()}\n```\nVariant {copy}.\n"
            ids[to_bytes.pre_tokenize_str(text)[0][0]] = FIRST_ANSWER + copy * len(answers) + place
    ids |= {text: number for number, text in control.items()}
    added = [_control(number, text) for number, text in sorted(control.items())]
    return Tokenizer.from_str(json.dumps({**words, "model": words["model"] | {"vocab": ids}, "added_tokens": added}))


def _control(number: int, text: str) -> dict[str, Any]:
    switches = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": text, "special": True, **switches}
