"""Chat markup by model family: our own function for the paper's families, or a tokenizer's own template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dice.errors import DiceError

ChatFamily = Literal["sdar", "sdar_released_rl", "qwen3", "llada", "dream", "diffucoder", "llama", "gemma", "plain"]
ThinkSection = Literal["none", "in_answer", "in_prompt"]
EMPTY_THINK = "<think>\n\n</think>\n\n"
"""Qwen3's reasoning section with nothing in it."""


@dataclass(frozen=True)
class ChatFormat:
    """Markup of one user turn and the header of the answer."""

    before: str
    after: str
    end: str
    """Text that ends an answer."""
    strips: bool = False
    """The family's template removes white space around the message."""
    control: tuple[str, ...] = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
    """Strings that would be control tokens inside a message."""


_QWEN25_SYSTEM = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
_LLAMA = ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")

FORMATS: dict[ChatFamily, ChatFormat] = {
    # Qwen3's template without a system turn; DICE and TraDo share it (deadlykitten4/DICE evaluation/src/utils.py)
    "sdar": ChatFormat("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>\n"),
    "qwen3": ChatFormat("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>\n"),
    # the authors wrote their RL prompts by hand: a space before the end, one more line after the header
    "sdar_released_rl": ChatFormat("<|im_start|>user\n", " <|im_end|>\n<|im_start|>assistant\n\n", "<|im_end|>\n"),
    # Qwen2.5's template with its system turn (Dream-org/Dream-v0-Instruct-7B)
    "dream": ChatFormat(_QWEN25_SYSTEM + "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>\n"),
    # the same with a line break after the message (README of apple/DiffuCoder-7B-Instruct)
    "diffucoder": ChatFormat(
        _QWEN25_SYSTEM + "<|im_start|>user\n", "\n<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>\n", strips=True
    ),
    "llada": ChatFormat(
        "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\n",
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        "<|eot_id|>",
        strips=True,
        control=("<|startoftext|>", *_LLAMA),
    ),
    # Llama 3 without the dated system turn of 3.1's template
    "llama": ChatFormat(
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n",
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        "<|eot_id|>",
        strips=True,
        control=("<|begin_of_text|>", *_LLAMA),
    ),
    "gemma": ChatFormat(
        "<bos><start_of_turn>user\n",
        "<end_of_turn>\n<start_of_turn>model\n",
        "<end_of_turn>\n",
        strips=True,
        control=("<bos>", "<start_of_turn>", "<end_of_turn>"),
    ),
    "plain": ChatFormat("", "", "<|endoftext|>", control=("<|endoftext|>",)),
}


def chat_prompt(text: str, family: ChatFamily, think: ThinkSection = "none") -> str:
    """`text` as a user turn, followed by the header of the answer.

    Raises DiceError for an unknown family, for `think` in a family without a reasoning section, and for a text that holds
    one of the family's control tokens, which would end the turn.
    """
    chat = _format_of(family, think)
    for token in chat.control:
        if token in text:
            raise DiceError(f"the prompt's text holds '{token}', a control token of the family {family}.")
    message = text.strip() if chat.strips else text
    return chat.before + message + chat.after + (EMPTY_THINK if think == "in_prompt" else "")


def chat_answer(text: str, family: ChatFamily, think: ThinkSection = "none") -> str:
    """`text` as the answer that follows `chat_prompt`, with the token that ends it."""
    chat = _format_of(family, think)
    return (EMPTY_THINK if think == "in_answer" else "") + text + chat.end


def _format_of(family: ChatFamily, think: ThinkSection) -> ChatFormat:
    if family not in FORMATS:
        raise DiceError(f"unknown chat family '{family}'; the families are {', '.join(FORMATS)}.")
    if think != "none" and family not in ("sdar", "sdar_released_rl", "qwen3"):
        raise DiceError(f"the family {family} has no reasoning section (think: none).")
    return FORMATS[family]
