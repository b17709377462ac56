"""`dice shard`: every n-th row of a file, so that verification can be several jobs.

Row k goes to shard k modulo n; the same row is in the same shard in every run.
"""

from __future__ import annotations

import argparse

from dice.config import add_options, config_from, stage_config, to_spec
from dice.errors import DiceError
from dice.jsonl import read_objects, write_jsonl
from dice.manifest import Stopwatch, write_manifest


@stage_config
class ShardConfig:
    """What `dice shard` takes."""

    rows: str
    """JSON lines."""
    out: str
    """JSON lines to write."""
    index: int
    """Which shard, from 0."""
    of: int
    """Number of shards."""


def shard(config: ShardConfig) -> int:
    """Write the share; returns its number of rows."""
    watch = Stopwatch()
    if not 0 <= config.index < config.of:
        raise DiceError(f"shard {config.index} of {config.of}: count from 0.")
    rows = [row for number, (_, row) in enumerate(read_objects(config.rows)) if number % config.of == config.index]
    if not rows:
        raise DiceError(f"{config.rows}: fewer rows than {config.of} shards; lower `shards`.")
    write_jsonl(config.out, rows)
    write_manifest(config.out, stage="shard", spec=to_spec(config), watch=watch, inputs=[config.rows])
    return len(rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice shard`."""
    add_options(parser, ShardConfig, "rows", "out", "index", "of")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice shard`."""
    config = config_from(args, ShardConfig)
    print(f"{shard(config)} rows written to {config.out}")
    return 0
