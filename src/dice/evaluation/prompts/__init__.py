"""The prompts for a model, and the form of the answers that it is trained to give.

Our prompts have the information of the paper's one-shot prompts (A.1, which follow KernelBench's) in the same order, in
our own words. `one_shot` is for pretrained models; `compact` says the same in a few tokens, for models trained from
scratch (`dice.evaluation.prompts.compact`); `kernelbench` is the text of KernelBench's own constructor, byte for byte
(`dice.evaluation.prompts.kernelbench`).
"""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dice.config import stage_config
from dice.data.infilling import split_candidate
from dice.data.middle import hole_variable
from dice.data.source_string import InfillingRefused
from dice.errors import DiceError
from dice.evaluation.prompts.chat import ChatFamily, ThinkSection, chat_answer, chat_prompt
from dice.evaluation.prompts.compact import compact_program
from dice.evaluation.prompts.kernelbench import kernelbench_prompts
from dice.kernels.api import cores

EACH = 4_000
"""Prompts that are worth a process of their own: seconds of work, where a process takes one to start."""
PromptTask = Literal["end_to_end", "infilling"]
PromptStyle = Literal["one_shot", "compact", "kernelbench"]
InfillingAnswer = Literal["middle", "file"]


@stage_config
class PromptConfig:
    """How problems become prompts."""

    style: PromptStyle = "one_shot"
    """`one_shot`, `compact` (few tokens, for models trained from scratch) or `kernelbench` (its own text, as the paper's
    A.1.2; for infilling, which KernelBench has not, that of `one_shot`)."""
    answer: InfillingAnswer = "middle"
    """What an infilling prompt asks for: the missing part, or the whole file as in the authors' code."""
    chat: ChatFamily = "sdar"
    """Model family whose chat markup surrounds the prompt."""
    think: ThinkSection = "none"
    """Where Qwen3's empty reasoning section is: nowhere, in the answer (the authors' SFT) or in the prompt."""
    kernelbench_checkout: str | None = None
    """Folder of KernelBench's checkout, for the style `kernelbench`."""
    kernelbench_sha256: str | None = None
    """sha256 of the text that the checkout must give for an empty program; None: any version's text is taken."""


@dataclass(frozen=True)
class Example:
    """The worked example: element-wise addition."""

    reference: str
    solution: str
    prefix: str
    middle: str
    suffix: str


@dataclass(frozen=True)
class Task:
    """One task for the model: a program, and for infilling the scaffold around the missing part."""

    pytorch_code: str
    prefix: str | None = None
    suffix: str | None = None

    @property
    def kind(self) -> PromptTask:
        """`infilling` when there is a scaffold."""
        return "end_to_end" if self.prefix is None else "infilling"


def prompt_sha256(prompt: str) -> str:
    """Identity of a prompt: hex sha256 of its UTF-8 text, chat markup included."""
    return hashlib.sha256(prompt.encode()).hexdigest()


def make_prompts(tasks: Sequence[Task], config: PromptConfig) -> list[str]:
    """The prompts of `tasks` with chat markup, ready to be tokenized. Raises DiceError."""
    theirs = [config.style == "kernelbench" and task.kind == "end_to_end" for task in tasks]
    style = "one_shot" if config.style == "kernelbench" else config.style
    made = iter(_kernelbench([task.pytorch_code for task, one in zip(tasks, theirs, strict=True) if one], config))
    ours = iter(_rendered([task for task, one in zip(tasks, theirs, strict=True) if not one], style, config.answer))
    return [chat_prompt(next(made if one else ours), config.chat, config.think) for one in theirs]


def _rendered(tasks: list[Task], style: PromptStyle, answer: InfillingAnswer) -> list[str]:
    """Our own prompts in order; many of them are written by several processes."""
    write = partial(render_prompt, style=style, answer=answer)
    jobs = min(cores(), len(tasks) // EACH)
    if jobs < 2:
        return [write(task) for task in tasks]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(write, tasks, chunksize=100))


def _kernelbench(codes: list[str], config: PromptConfig) -> list[str]:
    """KernelBench's prompts. Raises DiceError without a checkout, and for one with another text than was asked for."""
    if not codes:
        return []
    if config.kernelbench_checkout is None:
        raise DiceError("the prompt style 'kernelbench' needs KernelBench's folder (kernelbench_checkout).")
    empty, *texts = kernelbench_prompts(config.kernelbench_checkout, ["", *codes])
    if config.kernelbench_sha256 not in (None, prompt_sha256(empty)):
        raise DiceError(
            f"{config.kernelbench_checkout}: its prompt is not the one that was asked for (kernelbench_sha256); "
            "take KernelBench at the commit of its version 0.1."
        )
    return texts


def make_answer(code: str, config: PromptConfig) -> str:
    """The answer that a model should give, with its markup: a fenced block, or bare code in the compact style.

    `code` is the whole file, or the middle where an infilling prompt asks for it.
    """
    text = code if config.style == "compact" else f"```python\n{code.strip(chr(10))}\n```"
    return chat_answer(text, config.chat, config.think)


def render_prompt(task: Task, *, style: PromptStyle = "one_shot", answer: InfillingAnswer = "middle") -> str:
    """The text of one prompt without chat markup. Raises DiceError for an incomplete scaffold."""
    if style == "kernelbench":
        raise DiceError("KernelBench's own text comes from its checkout (kernelbench_prompts), not from our templates.")
    if (task.prefix is None) != (task.suffix is None):
        raise DiceError("an infilling prompt needs both prefix and suffix.")
    variable = None
    if task.prefix is not None and task.suffix is not None:
        try:
            variable = hole_variable(task.prefix, task.suffix)
        except InfillingRefused as refusal:
            raise DiceError(f"prefix and suffix are no scaffold: {refusal}.") from refusal
    name = f"compact_{task.kind}.j2" if style == "compact" else f"{task.kind}.j2"
    return (
        _templates()
        .get_template(name)
        .render(
            example=example(),
            pytorch_code=compact_program(task.pytorch_code) if style == "compact" else _block(task.pytorch_code),
            prefix=_block(task.prefix or ""),
            suffix=_block(task.suffix or ""),
            variable=variable,
            answer=answer,
        )
    )


@cache
def example() -> Example:
    """The worked example, split by the same rule as every other program."""
    reference, solution = (
        _templates().get_template(f"example_{name}.j2").render() for name in ("reference", "solution")
    )
    split = split_candidate(solution)
    return Example(
        *(_block(part) for part in (reference, solution, split.prefix, split.middle, split.suffix)),
    )


@cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, keep_trailing_newline=True
    )


def _block(code: str) -> str:
    """Code without the empty lines around it, as it is put between fences."""
    return code.strip("\r\n")
