"""`dice publish`: a finished model from its state folder to where the study reads it, whole or not at all.

    dice publish --out results/models/8B-dice results/state/8B-dice-.../model results/state/8B-dice-.../history.jsonl

The folder appears by renaming. `SHA256SUMS` in it lists every file, for `dice audit` and for `sha256sum --check`.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from dice.errors import DiceError
from dice.manifest import sha256_file

SUMS = "SHA256SUMS"
NOT_CONTENT = (SUMS, ".snakemake_timestamp")
"""Files of a model's folder that are not the model's; the second is Snakemake's."""


def publish(sources: Sequence[str | Path], out: str | Path) -> None:
    """Copy files, and the contents of folders, to the folder `out`, which is replaced and may be a source itself.

    Raises DiceError for a source that is not there.
    """
    out = Path(out)
    part = out.with_name(f"{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    hashes = {}
    for source in map(Path, sources):
        if not source.exists():
            raise DiceError(f"{source}: no such file or folder, so there is nothing to publish.")
        for file in sorted(source.rglob("*")) if source.is_dir() else [source]:
            name = file.relative_to(source if source.is_dir() else source.parent)
            if file.is_dir() or name.name in NOT_CONTENT:
                continue
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, part / name)
            hashes[str(name)] = sha256_file(part / name)
    (part / SUMS).write_text(
        "".join(f"{digest}  {name}\n" for name, digest in sorted(hashes.items())), encoding="utf-8"
    )
    shutil.rmtree(out, ignore_errors=True)
    os.rename(part, out)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice publish`."""
    parser.add_argument("sources", nargs="+", help="files, and folders whose contents are taken")
    parser.add_argument("--out", required=True, help="folder to make")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice publish`."""
    publish(args.sources, args.out)
    return 0
