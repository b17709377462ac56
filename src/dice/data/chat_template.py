"""A checkpoint's own chat template around one user turn, as `transformers` renders it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dice.data.tokenizer import CodeTokenizer
from dice.errors import DiceError
from dice.jsonl import read_object

TEMPLATE_FILE = "chat_template.jinja"
SETTINGS_FILE = "tokenizer_config.json"
_SPECIALS = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")


def checkpoint_chat(folder: str | Path, tokenizer: CodeTokenizer) -> Callable[[str], str]:
    """A function from a message to the text of the prompt: one user turn, and the header of the answer.

    Its options, such as Qwen3's thinking, keep the template's own defaults. Raises DiceError for a checkpoint without a
    template; the function does for a message that holds a control token, which would end the turn, and for a template that
    cannot be rendered.
    """
    from jinja2 import TemplateError
    from transformers import PreTrainedTokenizerFast

    folder = Path(folder)
    settings = {}
    if (folder / SETTINGS_FILE).is_file():
        settings = read_object(folder / SETTINGS_FILE)
    template = settings.get("chat_template")
    if isinstance(template, list):  # several by name
        named = (one for one in template if isinstance(one, dict) and one.get("name") == "default")
        template = next(named, {}).get("template")
    if (folder / TEMPLATE_FILE).is_file():
        template = (folder / TEMPLATE_FILE).read_text(encoding="utf-8")
    if not isinstance(template, str) or not template:
        raise DiceError(f"{folder}: the checkpoint has no chat template ({SETTINGS_FILE}, {TEMPLATE_FILE}).")
    given = {name: settings[name] for name in _SPECIALS if settings.get(name)}
    specials = {name: token["content"] if isinstance(token, dict) else token for name, token in given.items()}
    renderer = PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend, chat_template=template, **specials)
    control = [token.content for token in tokenizer.backend.get_added_tokens_decoder().values() if token.special]

    def render(message: str) -> str:
        for token in control:
            if token in message:
                raise DiceError(f"the prompt's text holds '{token}', a control token of {folder}.")
        turns = [{"role": "user", "content": message}]
        try:
            text = renderer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        except TemplateError as error:
            raise DiceError(f"{folder}: its chat template cannot be rendered ({error}).") from error
        assert isinstance(text, str)
        return text

    return render
