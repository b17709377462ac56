"""`dice standins`: what the scale `rehearsal` takes in place of the hub, KernelBench and the user's files.

    dice standins --config '{"benchmark": "stand-ins/KernelBench", "checkpoints": {"stand-ins/hub/a/b": "sdar"}}'

The same settings give the same files.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pydantic import Field

from dice.config import add_options, config_from, stage_config
from dice.errors import DiceError
from dice.evaluation.prompts import Task, render_prompt
from dice.standins.benchmark import write_benchmark
from dice.standins.checkpoints import PUBLISHED, write_checkpoint
from dice.standins.data import ROWS, write_answers, write_data
from dice.standins.programs import benchmark, training_pairs
from dice.standins.vocabulary import train_words

REWARDED = ("infilling", "end_to_end")
"""Formats of the problems of reinforcement learning: their programs are among the answers of the models to train."""
TRAINED = ("sdar",)
"""Families that are trained by rewards."""


@stage_config
class StandInsConfig:
    """What `dice standins` writes. Paths come from the scale's configuration."""

    benchmark: str
    """Folder in KernelBench's layout."""
    checkpoints: dict[str, str] = Field(default_factory=dict)
    """Folder of a repository -> model family."""
    data: dict[str, str] = Field(default_factory=dict)
    """File of the user's -> its format (dice.standins.data)."""
    answers: dict[str, str] = Field(default_factory=dict)
    """File of answers to the benchmark -> the vendor's id of the model, for a record; empty for published solutions."""
    problems: int = Field(default=1, ge=0)
    """Synthetic problems of each level, behind one of the mini benchmark."""
    pairs: int = Field(default=8, ge=2)
    """Rows of each file of the user's."""
    seed: int = 0
    """Seed of programs and weights."""


def write_stand_ins(config: StandInsConfig) -> None:
    """Write all of it. Raises DiceError for a format or a family that has no stand-in."""
    if unknown := sorted({*config.data.values()} - {*ROWS}):
        raise DiceError(f"standins: no format '{unknown[0]}'; known are {', '.join(sorted(ROWS))}.")
    if unknown := sorted({*config.checkpoints.values()} - {*PUBLISHED}):
        raise DiceError(f"standins: no family '{unknown[0]}'; known are {', '.join(sorted(PUBLISHED))}.")
    problems = benchmark(config.problems, config.seed)
    write_benchmark(Path(config.benchmark), problems)
    for path, model in config.answers.items():
        write_answers(Path(path), problems, model)
    unrewarded = [name for name in ROWS if name not in REWARDED]
    asked, *others = (training_pairs(config.pairs, config.seed + part) for part in range(1, 2 + len(unrewarded)))
    of_format = dict.fromkeys(REWARDED, asked) | dict(zip(unrewarded, others, strict=True))
    for path, name in config.data.items():
        write_data(Path(path), name, of_format[name])
    texts = [render_prompt(Task(asked[0].pytorch_code))]
    texts += [text for pair in asked for text in (pair.pytorch_code, pair.cuda_code)]
    words = train_words(texts)
    programs = [*(one.solution for one in problems if one.solution), *(pair.cuda_code for pair in asked)]
    for number, (folder, family) in enumerate(config.checkpoints.items()):
        answers = programs if family in TRAINED else ()
        write_checkpoint(Path(folder), PUBLISHED[family], words, answers, config.seed + number)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice standins`."""
    add_options(parser, StandInsConfig, "benchmark", "problems", "pairs", "seed")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice standins`."""
    config = config_from(args, StandInsConfig)
    write_stand_ins(config)
    print(f"{len(config.checkpoints)} checkpoints, {len(config.data)} data files and a benchmark written")
    return 0
