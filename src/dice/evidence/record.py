"""`dice record`: a finished study as a small folder that makes its own tables and figures again.

    dice record results --out results/recorded/tiny
    dice record results/nano --out results/recorded/nano

The manifests say what the reports (tables, figures, strata, exams, claims, the comparison with the paper) were made from.
What a report reads is taken whole: verdicts, problems, histories, counted data; so are the answers that were judged. Of what
lies further down (weights; training data without `--with-data`) the manifests and hashes are taken. The folder is made only
if the reports, made again from these files, are the same byte for byte (`dice regenerate`).
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from dice.errors import DiceError
from dice.evidence.chain import folder_hashes, inputs_of
from dice.evidence.recording import HISTORY, INDEX, Kept, Record, Report, check_replaced, store, write_record
from dice.evidence.regenerate import STAGES, make_again
from dice.manifest import MANIFEST_SUFFIX, MODEL_MANIFEST, Manifest, manifest_path, read_manifest, sha256_file
from dice.study.publish import NOT_CONTENT, SUMS

LIMIT_MB = 15.0


@dataclass
class Found:
    """What the manifests lead to."""

    reports: list[str] = field(default_factory=list)
    """Each after those that it reads."""
    whole: dict[str, None] = field(default_factory=dict)
    """Files to take; an ordered set."""
    absent: dict[str, None] = field(default_factory=dict)
    """Files of which the hash is enough."""
    gone: dict[str, str] = field(default_factory=dict)
    """File that a folder's sums name and that is not there any more, such as large weights -> its sha256."""
    with_data: bool = False
    """Take the training data whole, too."""
    seen: set[str] = field(default_factory=set)

    def visit(self, path: str, whole: bool = False) -> None:
        """Follow the manifests from a file or folder. Raises DiceError for a path that only this machine has."""
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise DiceError(f"{path}: a study that is recorded names its files by relative paths.")
        place, manifest = Path(path), read_manifest(path)
        is_report = manifest is not None and manifest.stage in STAGES
        if place.is_file() and not is_report:
            (self.whole if whole or (self.with_data and path.endswith(".jsonl")) else self.absent)[path] = None
        if path in self.seen:
            return
        self.seen.add(path)
        if place.is_dir():
            self._folder(path, manifest)
        if manifest is None:
            return
        if manifest_path(path).is_file():
            self.whole[str(manifest_path(path))] = None
        for child, _ in inputs_of(place, manifest):
            self.visit(child, is_report or child == manifest.spec.get("candidates"))
        if is_report:
            self.reports.append(path)

    def _folder(self, path: str, manifest: Manifest | None) -> None:
        kept = (MODEL_MANIFEST, SUMS, HISTORY)
        for file in sorted(Path(path).rglob("*")):
            if file.is_file() and (file.name == SUMS or file.name not in NOT_CONTENT):
                (self.whole if file.name in kept else self.absent)[str(file)] = None
        sums = folder_hashes(Path(path), manifest)
        self.gone |= {f"{path}/{name}": digest for name, digest in sums.items() if not Path(path, name).exists()}


def find(results: str, with_data: bool = False) -> Found:
    """What the reports at the top of a results folder rest on. Raises DiceError where there is no report."""
    found = Found(with_data=with_data)
    for manifest in sorted(Path(results).glob(f"*{MANIFEST_SUFFIX}")):
        path = str(manifest).removesuffix(MANIFEST_SUFFIX)
        read = read_manifest(path)
        if read is not None and read.stage in STAGES:
            found.visit(path)
    if not found.reports:
        raise DiceError(f"{results}: no table or figure with its manifest; make some first.")
    return found


def record(results: str, out: Path, limit_mb: float = LIMIT_MB, with_data: bool = False) -> Record:
    """Make the folder `out`, whole or not at all. Raises DiceError where a report is not made again from its files, or the
    folder would be larger than `limit_mb` (10^6 bytes), or would replace the study."""
    from matplotlib import __version__ as drawn_with

    check_replaced(out, Path(results))
    found = find(results, with_data)
    part = out.with_name(f".{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        made = Record(results=str(Path(results)), drawn_with=drawn_with, reports=_reports(found), files={})
        store(made, part, {*found.whole, *made.made()})
        for path in found.absent:
            if path not in made.files:
                made.files[path] = Kept(sha256=sha256_file(path), bytes=Path(path).stat().st_size, left_out=True)
        for path, digest in found.gone.items():
            made.files[path] = Kept(sha256=digest, bytes=None, left_out=True)
        write_record(part / INDEX, made)
        _check_size(part, limit_mb)
        shutil.rmtree(out, ignore_errors=True)
        os.rename(part, out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return made


def _reports(found: Found) -> list[Report]:
    """Each report with the files that its stage writes. Raises DiceError where one, made again from the files that are taken
    whole, is not what the study has."""
    reports = []
    with tempfile.TemporaryDirectory(prefix="dice-record-") as name:
        root = Path(name)
        for path in found.whole:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, root / path)
        before = _files(root)
        for path in found.reports:
            make_again(path, root)
            after = _files(root)
            written, before = sorted(after - before), after
            for file in written:
                if not Path(file).is_file() or sha256_file(file) != sha256_file(root / file):
                    raise DiceError(
                        f"{file}: made again from its inputs it is another file; make the study's anew first."
                    )
            reports.append(Report(out=path, files=tuple(written)))
    return reports


def _files(root: Path) -> set[str]:
    return {str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()}


def size_mb(folder: Path) -> float:
    """Size of a folder's files, in 10^6 bytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def _check_size(folder: Path, limit_mb: float) -> None:
    if size_mb(folder) <= limit_mb:
        return
    files = sorted((file for file in folder.rglob("*") if file.is_file()), key=lambda file: -file.stat().st_size)
    largest = ", ".join(f"{file.relative_to(folder)} {file.stat().st_size / 1e6:.1f}" for file in files[:3])
    raise DiceError(f"the folder would have {size_mb(folder):.1f} MB; the limit is {limit_mb:g}. Largest: {largest}.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice record`."""
    parser.add_argument("results", help="folder of a finished study, as its manifests name it")
    parser.add_argument("--out", required=True, help="folder to make or replace, such as results/recorded/tiny")
    parser.add_argument("--with-data", action="store_true", help="take the training data whole, too")
    parser.add_argument(
        "--limit-mb", type=float, default=LIMIT_MB, help="refuse to make a larger one (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice record`."""
    out = Path(args.out)
    made = record(args.results, out, args.limit_mb, args.with_data)
    kept = sum(not one.left_out for one in made.files.values())
    hashed = len(made.files) - kept
    print(
        f"{out}: {len(made.reports)} reports, {kept} files and {INDEX}, {size_mb(out):.1f} MB; of {hashed} more "
        "files the hash is kept. All reports were made again from these files, byte for byte."
    )
    return 0
