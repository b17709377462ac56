"""A checkpoint's own chat template around one user turn, as `transformers` renders it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from dice.data.tokenizer import CodeTokenizer
from dice.errors import DiceError

TEMPLATE_FILE = "chat_template.jinja"
SETTINGS_FILE = "tokenizer_config.json"
_SPECIALS = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")


def checkpoint_chat(folder: str | Path, tokenizer: CodeTokenizer) -> Callable[[str], str]:
    """A function from a message to the text of the prompt: one user turn, and the header of the answer.

    Its options, such as Qwen3's thinking, keep the template's own defaults. Raises DiceError for a checkpoint without a
    template; the function does for a message that holds a control token, which would end the turn.
    """
    from transformers import PreTrainedTokenizerFast

    folder = Path(folder)
    settings = {}
    if (folder / SETTINGS_FILE).is_file():
        settings = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    template = settings.get("chat_template")
    if isinstance(template, list):  # several by name
        template = {one["name"]: one["template"] for one in template}.get("default")
    if (folder / TEMPLATE_FILE).is_file():
        template = (folder / TEMPLATE_FILE).read_text(encoding="utf-8")
    if not template:
        raise DiceError(f"{folder}: the checkpoint has no chat template ({SETTINGS_FILE}, {TEMPLATE_FILE}).")
    named = {name: settings[name] for name in _SPECIALS if settings.get(name)}
    specials = {name: token["content"] if isinstance(token, dict) else token for name, token in named.items()}
    renderer = PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend, chat_template=template, **specials)
    control = [token.content for token in tokenizer.backend.get_added_tokens_decoder().values() if token.special]

    def render(message: str) -> str:
        for token in control:
            if token in message:
                raise DiceError(f"the prompt's text holds '{token}', a control token of {folder}.")
        turns = [{"role": "user", "content": message}]
        text = renderer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        assert isinstance(text, str)
        return text

    return render
