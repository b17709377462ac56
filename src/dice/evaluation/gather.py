"""`dice gather`: the verdicts of all shards as one file, sorted by problem, sample and protocol.

The file is the same for any number of shards but for times and places.
"""

from __future__ import annotations

import argparse

from dice.config import add_options, config_from, stage_config, to_spec
from dice.errors import DiceError
from dice.jsonl import read_jsonl, write_jsonl
from dice.kernels.api import Verdict
from dice.manifest import Stopwatch, write_manifest


@stage_config
class GatherConfig:
    """What `dice gather` joins."""

    shards: tuple[str, ...]
    """Files of verdicts."""
    out: str
    """verdicts.jsonl to write."""


def gather(config: GatherConfig) -> list[Verdict]:
    """Join and sort; raises DiceError for a verdict that is given twice."""
    watch = Stopwatch()
    rows: dict[tuple[str, int, str], Verdict] = {}
    for path in config.shards:
        for verdict in read_jsonl(path, Verdict):
            key = (verdict.problem_id, verdict.sample, verdict.protocol)
            if key in rows:
                raise DiceError(f"{path}: sample {verdict.sample} of {verdict.problem_id} has a verdict already.")
            rows[key] = verdict
    verdicts = [rows[key] for key in sorted(rows)]
    write_jsonl(config.out, verdicts)
    write_manifest(config.out, stage="gather", spec=to_spec(config), watch=watch, inputs=config.shards)
    return verdicts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice gather`."""
    add_options(parser, GatherConfig, "shards", "out")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice gather`."""
    config = config_from(args, GatherConfig)
    print(f"{len(gather(config))} verdicts written to {config.out}")
    return 0
