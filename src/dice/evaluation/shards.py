"""`dice shard`: every n-th row of a file, so that verification can be several jobs.

Row k goes to shard k modulo n; the same row is in the same shard in every run.
"""

from __future__ import annotations

import argparse

from dice.config import load_config, stage_config, to_spec
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
    parser.add_argument("--rows", help="JSON lines")
    parser.add_argument("--out", help="JSON lines to write")
    parser.add_argument("--index", type=int, help="which shard, from 0")
    parser.add_argument("--of", type=int, help="number of shards")
    parser.add_argument("--config", help="YAML or JSON with the same keys")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice shard`."""
    flags = {name: getattr(args, name) for name in ("rows", "out", "index", "of") if getattr(args, name) is not None}
    config = load_config(ShardConfig, args.config, (), flags)
    print(f"{shard(config)} rows written to {config.out}")
    return 0
