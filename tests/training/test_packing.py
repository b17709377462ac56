"""Pairs as samples: what a prompt and an answer are, whole blocks, and samples that are too long."""

from __future__ import annotations

import numpy as np
import pytest
from rl_start import MIDDLE, PREFIX, SUFFIX, pair

from dice.data.pair import Pair
from dice.data.tokenizer import CodeTokenizer, train_tokenizer
from dice.errors import DiceError
from dice.evaluation.prompts import PromptConfig
from dice.training.packing import Sample, encode_pairs

SPLIT = pair("double")
WHOLE = pair("square").model_copy(update={"prefix": None, "middle": None, "suffix": None})


@pytest.fixture(scope="module")
def tokenizer() -> CodeTokenizer:
    return train_tokenizer([SPLIT.pytorch_code, SPLIT.cuda_code, WHOLE.cuda_code], 400)


def encoded(
    tokenizer, *pairs: Pair, block_size=4, window=2000, prompt=None, **changes
) -> tuple[list[Sample], list[str]]:
    config = PromptConfig(style="compact", **(prompt or {}))
    return encode_pairs(pairs, tokenizer, config, block_size=block_size, window=window, **changes)


def answer_of(tokenizer, sample: Sample) -> str:
    return tokenizer.decode(sample.ids[sample.prompt_length :].tolist())


@pytest.mark.parametrize("block_size", [1, 4, 7, 64])
def test_a_sample_is_filled_to_whole_blocks_with_the_token_that_ends_a_text(tokenizer, block_size):
    (plain,), _ = encoded(tokenizer, SPLIT, block_size=1)
    (sample,), _ = encoded(tokenizer, SPLIT, block_size=block_size)
    length = len(plain.ids)
    assert len(sample.ids) == next(n for n in range(length, length + block_size) if n % block_size == 0)
    assert np.array_equal(sample.ids[:length], plain.ids)
    assert set(sample.ids[length:].tolist()) <= {tokenizer.ids.ends[-1]}
    assert sample.prompt_length == plain.prompt_length


def test_the_prompt_asks_for_the_program_and_the_answer_is_the_kernel(tokenizer):
    (sample,), dropped = encoded(tokenizer, SPLIT)
    assert (sample.id, dropped) == ("double", [])
    question = tokenizer.decode(sample.ids[: sample.prompt_length].tolist())
    assert "class Model(nn.Module)" in question
    assert "return x * 2" in question
    assert "class ModelNew" not in question
    assert SPLIT.cuda_code.strip() in answer_of(tokenizer, sample)


def test_infilling_gives_prefix_and_suffix_and_asks_for_the_middle_or_the_file(tokenizer):
    (sample,), _ = encoded(tokenizer, SPLIT, task="infilling")
    question, answer = tokenizer.decode(sample.ids[: sample.prompt_length].tolist()), answer_of(tokenizer, sample)
    assert PREFIX.strip() in question
    assert SUFFIX.strip() in question
    assert SPLIT.middle is not None
    assert SPLIT.middle in answer
    assert MIDDLE.splitlines()[0] not in question
    assert "class ModelNew" not in answer
    (whole,), _ = encoded(tokenizer, SPLIT, task="infilling", prompt={"answer": "file"})
    assert SPLIT.cuda_code.strip() in answer_of(tokenizer, whole)


def test_what_cannot_be_split_teaches_the_whole_task_alone(tokenizer):
    names = {
        task: [sample.id for sample in encoded(tokenizer, SPLIT, WHOLE, task=task)[0]]
        for task in ("end_to_end", "both")
    }
    assert names == {"end_to_end": ["double", "square"], "both": ["double", "double", "square"]}
    with pytest.raises(DiceError, match="pair 'square' has no middle"):
        encoded(tokenizer, SPLIT, WHOLE, task="infilling")


def test_a_sample_as_long_as_the_window_fits_and_a_longer_one_does_not(tokenizer):
    longer = SPLIT.model_copy(update={"id": "longer", "cuda_code": SPLIT.cuda_code + "# more\n" * 9})
    (sample,), _ = encoded(tokenizer, SPLIT)
    room = len(sample.ids)
    assert len(encoded(tokenizer, SPLIT, window=room)[0]) == 1
    with pytest.raises(DiceError, match=f"pair 'double' needs {room} tokens and the window has {room - 1}"):
        encoded(tokenizer, SPLIT, window=room - 1)
    kept, dropped = encoded(tokenizer, longer, SPLIT, window=room, on_long="drop")
    assert ([one.id for one in kept], dropped) == (["double"], ["longer"])
    with pytest.raises(DiceError, match="no pair fits the window"):
        encoded(tokenizer, longer, window=room, on_long="drop")
