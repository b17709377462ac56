"""JSON lines: the format of everything that flows between stages (docs/schema/).

Whole files are written to a temporary name and renamed, so a file that exists is complete. Long stages append
to a `Journal`, which survives kill -9: a torn last line is cut off when the journal is opened again.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dice.errors import DiceError

Row = TypeVar("Row", bound=BaseModel)


class BadRow(BaseModel):
    """A row that was left out, and why."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)
    path: str
    line: int
    """Line of the file, from 1, at which the row starts."""
    id: str | None = None
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {f'row {self.id!r}: ' if self.id is not None else ''}{self.reason}"


class RowError(ValueError):
    """One row cannot be used; the message is the reason, without file and line."""


@contextmanager
def atomic_writer(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path`; rename it to `path` only if the block ends without an exception."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, mode, encoding=None if "b" in mode else "utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)  # mkstemp makes private files; a result is as readable as any other
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_text(path: str | Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_writer(path) as stream:
        stream.write(text)


def valid_text(text: str) -> str:
    """`text` with its lone surrogates, which no file can hold, written as escapes: `\\ud800`.

    On a JSON line such an escape stands for the same surrogate, so that nothing is lost there.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def to_line(row: BaseModel | dict[str, Any]) -> str:
    """One JSON line without the newline; pydantic rows and plain dictionaries alike. No text is too odd for it."""
    data = row.model_dump(mode="json") if isinstance(row, BaseModel) else row
    return valid_text(json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def write_jsonl(path: str | Path, rows: Iterable[BaseModel | dict[str, Any]]) -> int:
    """Write `rows` atomically and return their number."""
    n = 0
    with atomic_writer(path) as stream:
        for row in rows:
            stream.write(to_line(row) + "\n")
            n += 1
    return n


def read_object(path: str | Path) -> dict[str, Any]:
    """The JSON object that a whole file is. Raises DiceError for anything else."""
    try:
        value = json.loads(Path(path).read_bytes().decode())
    except OSError as error:
        raise DiceError(f"{path}: cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:  # also bytes that are no UTF-8
        raise DiceError(f"{path}: not valid JSON ({error}).") from error
    if not isinstance(value, dict):
        raise DiceError(f"{path}: expected a JSON object.")
    return value


def read_objects(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object). Raises DiceError that names the file and line of a bad row."""
    path = Path(path)
    if not path.is_file():
        raise DiceError(f"{path}: no such file; expected JSON lines.")
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line.decode())
            except (ValueError, RecursionError) as error:  # also bytes that are no UTF-8
                raise DiceError(f"{path}:{number}: not valid JSON ({error}).") from error
            if not isinstance(value, dict):
                raise DiceError(f"{path}:{number}: expected a JSON object, found {type(value).__name__}.")
            yield number, value


def read_jsonl(path: str | Path, row_type: type[Row]) -> Iterator[Row]:
    """Yield validated rows. Raises DiceError that names file, line and field of the first bad row."""
    for number, value in read_objects(path):
        yield valid_row(value, row_type, f"{path}:{number}")


def valid_row(value: dict[str, Any], row_type: type[Row], where: str) -> Row:
    """The row in `value`. Raises DiceError that names `where` and the first bad field."""
    try:
        return row_type.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "row"
        raise DiceError(f"{where}: field '{field}': {first['msg']}.") from error


class Journal:
    """Append-only JSON lines that survive kill -9 at any moment.

    Every append is one write followed by fsync. Opening cuts a torn last line off, so that a resumed run sees
    exactly the rows that were completed.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        os.ftruncate(self._fd, self._complete_bytes())
        os.lseek(self._fd, 0, os.SEEK_END)

    def _complete_bytes(self) -> int:
        end = os.lseek(self._fd, 0, os.SEEK_END)
        while end > 0:
            start = max(0, end - 65536)
            newline = os.pread(self._fd, end - start, start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
        return 0

    def append(self, *rows: BaseModel | dict[str, Any]) -> None:
        """Write rows durably."""
        data = "".join(to_line(row) + "\n" for row in rows).encode()
        while data:
            data = data[os.write(self._fd, data) :]
        os.fsync(self._fd)

    def close(self) -> None:
        """Close the file; further appends fail."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
