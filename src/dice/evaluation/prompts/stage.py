"""`dice prompts`: write the prompts of problems or pairs, so that a model's input can be read and compared."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from dice.config import add_options, config_from, stage_config, to_spec
from dice.data.pair import from_published, parse_pair, rows_with_lines, validate_row
from dice.errors import DiceError
from dice.evaluation.prompts import PromptConfig, PromptTask, Task, make_prompts, prompt_sha256
from dice.jsonl import RowError, write_jsonl
from dice.kernels.api import Problem, load_problem_folder
from dice.manifest import Stopwatch, write_manifest


class PromptRow(BaseModel):
    """One row of prompts.jsonl."""

    id: str
    task: PromptTask
    prompt_sha256: str
    prompt: str


@stage_config
class PromptsConfig:
    """What `dice prompts` reads and writes."""

    tasks: str
    """Problems (JSON lines or a folder), or pairs; pairs that are split give infilling prompts."""
    out: str
    """prompts.jsonl to write."""
    prompt: PromptConfig = PromptConfig()
    """How a task becomes a prompt."""
    end_to_end: bool = False
    """End-to-end prompts for pairs that are split, too."""


def write_prompts(config: PromptsConfig) -> list[PromptRow]:
    """Run the stage; returns the rows. Raises DiceError naming file and line of a row that is no task."""
    watch = Stopwatch()
    tasks = dict(_tasks(config))
    if not tasks:
        raise DiceError(f"{config.tasks}: no problems or pairs.")
    prompts = make_prompts(list(tasks.values()), config.prompt)
    rows = [
        PromptRow(id=name, task=task.kind, prompt_sha256=prompt_sha256(prompt), prompt=prompt)
        for (name, task), prompt in zip(tasks.items(), prompts, strict=True)
    ]
    write_jsonl(config.out, rows)
    inputs = [config.tasks] if Path(config.tasks).is_file() else []
    extra = {"prompts": len(rows), "longest_characters": max(len(row.prompt) for row in rows)}
    write_manifest(config.out, stage="prompts", spec=to_spec(config), watch=watch, inputs=inputs, extra=extra)
    return rows


def _tasks(config: PromptsConfig) -> Iterator[tuple[str, Task]]:
    if Path(config.tasks).is_dir():
        yield from ((problem.id, Task(problem.code)) for problem in load_problem_folder(config.tasks))
        return
    convert = from_published("unknown")
    for line, values in rows_with_lines(config.tasks):
        try:
            if isinstance(values, RowError):
                raise values
            if "pytorch_code" in values:
                pair = parse_pair(convert(values), require_cuda=False)
                scaffold = (None, None) if config.end_to_end else (pair.prefix, pair.suffix)
                yield pair.id, Task(pair.pytorch_code, *scaffold)
            else:
                problem = validate_row(values, Problem)
                yield problem.id, Task(problem.code)
        except RowError as error:
            raise DiceError(f"{config.tasks}:{line}: {error}.") from error


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice prompts`."""
    prompt = {"style": "prompt.style", "chat": "prompt.chat", "checkout": "prompt.kernelbench_checkout"}
    add_options(parser, PromptsConfig, "tasks", "out", **prompt)


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice prompts`."""
    config = config_from(args, PromptsConfig)
    rows = write_prompts(config)
    print(f"{len(rows)} prompts written to {config.out}")
    return 0
