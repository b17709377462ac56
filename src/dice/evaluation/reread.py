"""`dice reread`: the same answers, with the code taken as the authors' script takes it.

The script (deadlykitten4/DICE, evaluation/src/utils.py) takes the first fenced block, whatever it holds. It removes
reasoning for Qwen3 and cudaLLM alone, so that of other models the block is often a draft. Gemma's prompt is part of the
text that is searched, and its first block is the prompt's example. Our reading (`extract_code`) is the first block that
defines ModelNew, outside of reasoning.
"""

from __future__ import annotations

import argparse
import re
from typing import Literal

from dice.config import add_options, config_from, stage_config, to_spec
from dice.errors import DiceError
from dice.evaluation.generation import Generation, split_thought
from dice.evaluation.prompts.stage import PromptRow
from dice.jsonl import read_jsonl, write_jsonl
from dice.manifest import Stopwatch, write_manifest

_BLOCK = re.compile(r"```(.*?)```", re.DOTALL)
_LANGUAGES = ("python", "cpp")


@stage_config
class RereadConfig:
    """What `dice reread` reads, how, and what it writes."""

    generations: str
    """generations.jsonl of `dice generate` or `dice ask`."""
    out: str
    """generations.jsonl to write: the same answers with other code."""
    thoughts: Literal["kept", "removed"] = "kept"
    """Whether a block inside the reasoning counts."""
    prompts: str | None = None
    """prompts.jsonl whose text stands before each answer, as with Gemma; None: the answer alone is searched."""


def first_block(text: str) -> str | None:
    """The first text between three backticks, without the name of a language; None: there is none.

    As KernelBench's extract_first_code(text, ["python", "cpp"]): a fence that is never closed is none.
    """
    found = _BLOCK.search(text.strip())
    if found is None:
        return None
    code = found[1].strip()
    for language in _LANGUAGES:
        if code.startswith(language):
            code = code.removeprefix(language).strip()
    return code


def reread(config: RereadConfig) -> list[Generation]:
    """Run the stage; returns the rows. Raises DiceError for an answer to a prompt that is not there."""
    watch = Stopwatch()
    prompts = {row.id: row.prompt for row in read_jsonl(config.prompts, PromptRow)} if config.prompts else {}
    rows = []
    for row in read_jsonl(config.generations, Generation):
        thought, answer = (row.thought, row.text) if row.thought is not None else split_thought(row.text)
        text = (
            answer if thought is None or config.thoughts == "removed" else f"<think>\n{thought}\n</think>\n\n{answer}"
        )
        if config.prompts:
            if row.problem_id not in prompts:
                raise DiceError(f"{config.prompts}: there is no prompt of {row.problem_id}.")
            text = prompts[row.problem_id] + text
        rows.append(row.model_copy(update={"code": first_block(text)}))
    write_jsonl(config.out, rows)
    inputs = filter(None, (config.generations, config.prompts))
    extra = {"answers": len(rows), "without_code": sum(row.code is None for row in rows)}
    write_manifest(config.out, stage="reread", spec=to_spec(config), watch=watch, inputs=inputs, extra=extra)
    return rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice reread`."""
    add_options(parser, RereadConfig, "generations", "out", "thoughts", "prompts")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice reread`."""
    config = config_from(args, RereadConfig)
    rows = reread(config)
    print(f"{len(rows)} answers written to {config.out}: {sum(row.code is not None for row in rows)} with code")
    return 0
