"""`dice regenerate`: the tables and figures of recorded studies, made again from what was recorded and compared.

    dice regenerate --out build/recorded            every study in results/recorded
    dice regenerate results/recorded/tiny --out build/recorded

Every report has a manifest with its stage and settings; that stage runs again, with today's code, on verdicts, answers and
histories of the folder alone: scores first, then tables, figures, claims. Each file must come out byte for byte; the
command names those that differ, and ends with exit code 1 when there are any. `unpacked.json` says what was recorded and what
was left out: `dice audit` reads it there.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from dice.cli import main
from dice.errors import DiceError
from dice.evidence.recording import INDEX, UNPACKED, Record, check_replaced, read_record, unpack, write_record
from dice.manifest import read_manifest, sha256_file

RECORDED = Path("results/recorded")
STAGES = ("score", "table", "strata", "exams", "figure", "check", "claims")
"""The stages that make reports; what they read is recorded whole."""
DRAWN = (".pdf", ".png")


@dataclass(frozen=True)
class Compared:
    """A file that was made again."""

    path: str
    same: bool
    note: str = ""


def make_again(path: str, root: Path) -> None:
    """Run the stage that made a report, on the files below `root`. Raises DiceError where it fails, or is not known."""
    manifest = read_manifest(root / path)
    if manifest is None or manifest.stage not in STAGES:
        raise DiceError(f"{path}: not a report with a manifest, so it cannot be made again.")
    errors = io.StringIO()
    quiet = contextlib.redirect_stdout(io.StringIO())
    with contextlib.chdir(root), quiet, contextlib.redirect_stderr(errors):
        code = main([manifest.stage, "--config", json.dumps(manifest.spec)])
    if code:
        message = errors.getvalue().strip().removeprefix(f"dice {manifest.stage}: ")
        commit = (manifest.git_commit or "an unknown commit")[:12]
        raise DiceError(f"{path}: cannot be made again: {message} It was recorded at {commit}.")


def regenerate(folder: Path, out: Path) -> list[Compared]:
    """Make the reports of a recorded study again, below `out`, which is replaced. Raises DiceError."""
    record = read_record(folder)
    check_replaced(out, folder)
    shutil.rmtree(out, ignore_errors=True)
    if wrong := unpack(record, folder, out, leave=record.made()):
        raise DiceError(f"{wrong[0]}.")
    for report in record.reports:
        make_again(report.out, out)
    write_record(out / UNPACKED, record)
    return [_compared(record, path, out / path) for report in record.reports for path in report.files]


def _compared(record: Record, path: str, made: Path) -> Compared:
    if not made.is_file():
        return Compared(path, False, "it was not made")
    same = sha256_file(made) == record.files[path].sha256
    note = ""
    if not same and made.suffix in DRAWN:
        from matplotlib import __version__ as version

        note = "" if version == record.drawn_with else f"drawn by matplotlib {record.drawn_with}, here {version}"
    return Compared(path, same, note)


def recorded_folders(given: list[str]) -> list[Path]:
    """The folders that were named, or all that are in results/recorded. Raises DiceError where there is none."""
    folders = [Path(name) for name in given] or sorted(index.parent for index in RECORDED.glob(f"*/{INDEX}"))
    if not folders:
        raise DiceError(f"{RECORDED}: no study is recorded; `dice record` makes a folder of a finished one.")
    return folders


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice regenerate`."""
    parser.add_argument("recorded", nargs="*", help=f"recorded studies (default: those in {RECORDED})")
    parser.add_argument("--out", required=True, help="folder to write; each study gets one below it, which is replaced")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice regenerate`."""
    differ = 0
    for folder in recorded_folders(args.recorded):
        out = Path(args.out) / folder.name
        found = regenerate(folder, out)
        for one in found:
            print(f"{'same' if one.same else 'DIFFERS':8s}{one.path}{f' ({one.note})' if one.note else ''}")
        wrong = sum(not one.same for one in found)
        differ += wrong
        print(f"{folder}: {len(found)} files made again in {out}, {f'{wrong} differ' if wrong else 'all the same'}.")
    return 1 if differ else 0
