"""`dice fingerprint`: twelve hexadecimal digits of the contents of files and folders.

A training run's state folder is named by it: an interrupted run finds its state again, and a run with other data, another
parent or other code never resumes it. Manifests and histories are left out: they hold times; and lists of hashes.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path

from dice.errors import DiceError
from dice.manifest import sha256_file
from dice.study.publish import SUMS


def _counts(path: Path) -> bool:
    return path.is_file() and path.name not in ("history.jsonl", SUMS) and not path.name.endswith(".manifest.json")


def fingerprint(paths: Sequence[str]) -> str:
    """Digest of names and contents, whatever the order of `paths`. Raises DiceError for one that is not there."""
    lines = []
    for name in sorted(set(paths)):
        path = Path(name)
        if not path.exists():
            raise DiceError(f"{name}: no such file or folder.")
        files = sorted(filter(_counts, path.rglob("*"))) if path.is_dir() else [path]
        lines += [f"{name}/{file.relative_to(path)} {sha256_file(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice fingerprint`."""
    parser.add_argument("paths", nargs="+", help="files and folders")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice fingerprint`."""
    print(fingerprint(args.paths))
    return 0
