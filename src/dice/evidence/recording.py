"""A recorded study: the small folder of what its tables and figures are made from, and of them themselves.

`record.json` names each file of the study by the path that the manifests know, with its hash. What lies at the top of the
study's results is a file of the folder; what lies in a folder below is in that folder's archive, such as
`generations.tar.xz`: the answers of all models to one exam have much in common. Files from elsewhere are in
`outside.tar.xz`. Weights and large data are left out: of them the hash is kept. Where a study was unpacked for good,
`unpacked.json` is the same index, and each file lies at the path that the manifests know.
"""

from __future__ import annotations

import lzma
import shutil
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from dice.errors import DiceError
from dice.jsonl import write_text
from dice.manifest import manifest_path, sha256_file

INDEX = "record.json"
UNPACKED = "unpacked.json"
OUTSIDE = "outside"
ARCHIVE_SUFFIX = ".tar.xz"
HISTORY = "history.jsonl"


class Kept(BaseModel):
    """A file of the study."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
    sha256: str
    """Of its bytes, not of an archive's."""
    bytes: int | None
    """None where the file was gone before the study was recorded."""
    left_out: bool = False
    """Only the hash is kept."""


class Report(BaseModel):
    """A table, a figure or another result that is made again from the rest."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
    out: str
    """The result that has the manifest."""
    files: tuple[str, ...] = ()
    """Everything that its stage writes."""


class Record(BaseModel):
    """The index of a recorded study. Paths are those of the manifests, relative to where the study ran."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    schema_version: int = 1
    results: str
    """Folder of the study's results."""
    drawn_with: str
    """Version of matplotlib; another one may draw other bytes."""
    reports: list[Report]
    """In the order in which they are made."""
    files: dict[str, Kept]

    @field_validator("files")
    @classmethod
    def _inside(cls, files: dict[str, Kept]) -> dict[str, Kept]:
        for path in files:
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise ValueError(f"'{path}' is not below the folder")
        return files

    def place(self, path: str) -> PurePosixPath:
        """Where a file of the study lies in the folder; below the top, its archive has the rest of the path."""
        pure = PurePosixPath(path)
        return pure.relative_to(self.results) if pure.is_relative_to(self.results) else PurePosixPath(OUTSIDE) / pure

    def made(self) -> set[str]:
        """Files that are made again."""
        return {file for report in self.reports for file in report.files}


def check_replaced(out: Path, read: Path) -> None:
    """Raises DiceError where replacing the folder `out` would delete the folder `read`: it is that one, or holds it."""
    if read.resolve().is_relative_to(out.resolve()):
        raise DiceError(f"{out}: would be deleted with {read} in it, which is read; name another folder as --out.")


def archive_of(place: PurePosixPath) -> tuple[str, str] | None:
    """The archive that has the file, and its name in there; None: it is a file of the folder."""
    top, *rest = place.parts
    return (f"{top}{ARCHIVE_SUFFIX}", "/".join(rest)) if rest else None


def is_recorded(folder: Path) -> bool:
    """Whether the folder is a recorded study."""
    return (folder / INDEX).is_file()


def read_record(folder: Path) -> Record:
    """The index of a recorded study. Raises DiceError."""
    if not is_recorded(folder):
        raise DiceError(f"{folder}: not a recorded study (no {INDEX}); `dice record` makes one.")
    return _read(folder / INDEX)


def _read(index: Path) -> Record:
    try:
        return Record.model_validate_json(index.read_bytes())
    except ValidationError as error:
        raise DiceError(f"{index}: {error.errors()[0]['msg']}.") from error


def write_record(index: Path, record: Record) -> None:
    """Write the index."""
    write_text(index, record.model_dump_json(indent=1) + "\n")


def unpacked(results: Path) -> tuple[Record, Path] | None:
    """The record that a folder of results was unpacked from, and where its paths begin; None: from none. Raises DiceError."""
    results = results.resolve()
    for root in (results, *results.parents):
        if (root / UNPACKED).is_file():
            record = _read(root / UNPACKED)
            return (record, root) if root / record.results == results else None
    return None


def store(record: Record, folder: Path, paths: Iterable[str]) -> None:
    """Take the study's files `paths`, of the working folder, into the folder, all at once."""
    archives: dict[str, dict[str, Path]] = {}
    for path in sorted(paths):
        source, place = Path(path), record.place(path)
        record.files[path] = Kept(sha256=sha256_file(source), bytes=source.stat().st_size)
        if inside := archive_of(place):
            archives.setdefault(inside[0], {})[inside[1]] = source
        else:
            shutil.copyfile(source, folder / place)
    for name, files in archives.items():
        _write_archive(folder / name, files)


def _write_archive(archive: Path, files: Mapping[str, Path]) -> None:
    """Always the same bytes for the same files."""
    with (
        lzma.open(archive, "wb", preset=9 | lzma.PRESET_EXTREME) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name, source in files.items():
            header = tarfile.TarInfo(name)
            header.size = source.stat().st_size
            with source.open("rb") as data:
                tar.addfile(header, data)


def unpack(record: Record, folder: Path, out: Path, leave: set[str] | None = None) -> list[str]:
    """Write the study's files, except those of `leave`, below `out`, each at its path.

    Returns a sentence for each file or archive of the folder that is gone or no longer what was recorded; it is written as
    far as it can be read.
    """
    wrong = []
    archives: dict[str, dict[str, str]] = {}
    for path, kept in record.files.items():
        if kept.left_out or path in (leave or set()):
            continue
        place = record.place(path)
        if inside := archive_of(place):
            archives.setdefault(inside[0], {})[inside[1]] = path
        elif (folder / place).is_file():
            with (folder / place).open("rb") as data:
                wrong += _written(data, out / path, kept, folder / place)
        else:
            wrong.append(f"{folder / place}: gone")
    for name, paths in archives.items():
        wrong += _extracted(folder / name, paths, record, out)
    return wrong


def _extracted(archive: Path, paths: Mapping[str, str], record: Record, out: Path) -> list[str]:
    """paths: name in the archive -> path in the study."""
    if not archive.is_file():
        return [f"{archive}: gone"]
    wrong, missing = [], dict(paths)
    try:
        with tarfile.open(archive, "r|xz") as tar:
            for one in tar:
                path, data = missing.pop(one.name, None), tar.extractfile(one)
                if path is not None and data is not None:
                    wrong += _written(data, out / path, record.files[path], f"{archive}: {one.name}")
    except (lzma.LZMAError, EOFError, tarfile.TarError):
        return [*wrong, f"{archive}: damaged"]
    return [*wrong, *(f"{archive}: {name} is gone from it" for name in missing)]


def _written(data: IO[bytes], target: Path, kept: Kept, source: object) -> list[str]:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(data, file)
    return [] if sha256_file(target) == kept.sha256 else [f"{source}: changed since it was recorded"]


def altered(record: Record, root: Path) -> list[str]:
    """A sentence for each file of a study that was unpacked below `root` that is gone or no longer what was recorded.

    The reports and their manifests are not compared: they were made anew there."""
    anew = record.made() | {str(manifest_path(report.out)) for report in record.reports}
    wrong = []
    for path, kept in record.files.items():
        file = root / path
        if path in anew or (kept.left_out and not file.exists()):
            continue
        if not file.is_file():
            wrong.append(f"{path}: gone")
        elif sha256_file(file) != kept.sha256:
            wrong.append(f"{path}: changed since it was recorded")
    return wrong
