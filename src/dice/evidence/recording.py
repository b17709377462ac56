"""A recorded study: the small folder of what its tables and figures are made from, and of them themselves.

`record.json` names each file of the study by the path that the manifests know, with its hash. A file below the study's
results has the same place in the folder; one from elsewhere lies below `outside/`. The JSON lines of a folder are one
archive in it, `jsonl.tar.xz`: the runs of a model have much in common, and one after the other they take a third less room
than each by itself. Weights and large data are left out: of them the hash is kept. Where a study was unpacked for good,
`unpacked.json` is the same index, and each file lies at the path that the manifests know.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from dice.errors import DiceError
from dice.jsonl import write_text
from dice.manifest import manifest_path, sha256_file

INDEX = "record.json"
UNPACKED = "unpacked.json"
OUTSIDE = "outside"
LINES = "jsonl.tar.xz"
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
        """Where a file of the study lies in the folder, by itself or in the archive beside it."""
        pure = PurePosixPath(path)
        return pure.relative_to(self.results) if pure.is_relative_to(self.results) else PurePosixPath(OUTSIDE) / pure

    def made(self) -> set[str]:
        """Files that are made again."""
        return {file for report in self.reports for file in report.files}


def check_replaced(out: Path, read: Path) -> None:
    """Raises DiceError where replacing the folder `out` would delete the folder `read`: it is that one, or holds it."""
    if read.resolve().is_relative_to(out.resolve()):
        raise DiceError(f"{out}: would be deleted with {read} in it, which is read; name another folder as --out.")


def in_archive(place: PurePosixPath) -> bool:
    """Whether a file is stored in its folder's archive."""
    return place.suffix == ".jsonl"


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
    """Take the study's files `paths`, of the working folder, into the folder; JSON lines of one folder all at once."""
    lines: dict[PurePosixPath, dict[str, bytes]] = {}
    for path in sorted(paths):
        data, place = Path(path).read_bytes(), record.place(path)
        record.files[path] = Kept(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        if in_archive(place):
            lines.setdefault(place.parent, {})[place.name] = data
        else:
            (folder / place).write_bytes(data)
    for parent, files in lines.items():
        (folder / parent / LINES).write_bytes(_archive(files))


def _archive(files: dict[str, bytes]) -> bytes:
    """Always the same bytes for the same files."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name, data in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(data)
            tar.addfile(header, io.BytesIO(data))
    return lzma.compress(plain.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def _files_of(archive: Path) -> dict[str, bytes]:
    """Raises LZMAError, EOFError, TarError, OSError."""
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(archive.read_bytes()))) as tar:
        return {one.name: data.read() for one in tar.getmembers() if (data := tar.extractfile(one)) is not None}


def unpack(record: Record, folder: Path, out: Path, leave: set[str] | None = None) -> list[str]:
    """Write the study's files, except those of `leave`, below `out`, each at its path.

    Returns a sentence for each file of the folder that is gone or no longer what was recorded; it is written as far as it
    can be read.
    """
    wrong = []
    opened = cache(_files_of)
    for path, kept in record.files.items():
        if kept.left_out or path in (leave or set()):
            continue
        place, target = record.place(path), out / path
        source = folder / (place.parent / LINES if in_archive(place) else place)
        if not source.is_file():
            wrong.append(f"{source}: gone")
            continue
        try:
            data = opened(source).get(place.name) if in_archive(place) else source.read_bytes()
        except (lzma.LZMAError, EOFError, tarfile.TarError):
            wrong.append(f"{source}: damaged")
            continue
        if data is None:
            wrong.append(f"{source}: {place.name} is gone from it")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        if sha256_file(target) != kept.sha256:
            wrong.append(f"{folder / place}: changed since it was recorded")
    return wrong


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
