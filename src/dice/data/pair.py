"""A training pair: a PyTorch program and a CUDA program that computes the same, and the rule for bad rows.

The rule holds for every file of rows that a stage reads: a row is read whole or not at all. A row is bad when its line is
not a JSON object, a field is missing, unknown or of the wrong type, its code is not Python, its level is not one of
LEVELS, or an earlier row of the file has its id (the earlier row stays). With `on_bad="refuse"` one bad row refuses the
file, and the error names the first bad row and how many there are; with `on_bad="skip"` bad rows are left out, and each
is reported as a BadRow with file and line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dice.errors import DiceError
from dice.jsonl import BadRow, RowError
from dice.python_text import check_python

LEVELS = (1, 2, 3, 4)
"""Levels of KernelBench: single operators, fusions, architectures, whole models of the Hugging Face hub."""

OnBad = Literal["refuse", "skip"]


class Measured(BaseModel):
    """Measurements of the pair's CUDA code; further ones may be added by name."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)
    status: str | None = None
    """Status of the verdict (`dice.kernels.api.Verdict`)."""
    speedup: float | None = None
    """Reference time over the CUDA code's time, on the same GPU."""
    runtime_ms: float | None = None
    reference_ms: float | None = None


class Pair(BaseModel):
    """One row of pairs.jsonl. `prefix + middle + suffix == cuda_code` wherever the three are present."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True, use_attribute_docstrings=True)
    id: str
    pytorch_code: str
    """Defines `Model`, `get_inputs()` and `get_init_inputs()`."""
    cuda_code: str
    """A whole Python file that defines `ModelNew`; empty where only the PyTorch program is given."""
    source: str
    """Where the row comes from: `concur`, `cudallm`, `structural`, `synthetic`, ..."""
    level: int | None = None
    """One of LEVELS; None: not labelled."""
    measured: Measured | None = None
    prefix: str | None = None
    middle: str | None = None
    suffix: str | None = None
    origin: dict[str, Any] = {}
    """Further facts from the row's source: row number, operator family, kind of flaw, ..."""

    @property
    def speedup(self) -> float | None:
        """The measured speed-up; None where none was measured."""
        return self.measured.speedup if self.measured else None


Model = TypeVar("Model", bound=BaseModel)


def check_level(level: int | None) -> None:
    """Raises RowError unless `level` is None or one of LEVELS."""
    if level is not None and level not in LEVELS:
        raise RowError(f"unknown level {level} (known: {', '.join(map(str, LEVELS))}, or null)")


def validate_row(values: Mapping[str, Any], model: type[Model]) -> Model:
    """`values` as a `model`. Raises RowError naming the first bad field."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "row"
        reasons = {"missing": f"missing field '{field}'", "extra_forbidden": f"unknown field '{field}'"}
        raise RowError(reasons.get(first["type"], f"field '{field}': {first['msg']}")) from error


def parse_pair(values: Mapping[str, Any], *, require_cuda: bool = True) -> Pair:
    """A checked Pair. Raises RowError with the reason; `require_cuda=False` lets `cuda_code` be empty."""
    pair = validate_row(values, Pair)
    if not pair.id:
        raise RowError("field 'id' is empty")
    check_level(pair.level)
    for field in ("pytorch_code", "cuda_code"):
        code = getattr(pair, field)
        if code.strip():
            check_python(code, field)
        elif field == "pytorch_code" or require_cuda:
            raise RowError(f"field '{field}' is empty")
    parts = (pair.prefix, pair.middle, pair.suffix)
    if any(part is not None for part in parts):
        if any(part is None for part in parts):
            raise RowError("of prefix, middle and suffix some are present and some are not")
        if "".join(part or "" for part in parts) != pair.cuda_code:
            raise RowError("prefix + middle + suffix is not cuda_code")
    return pair


def rows_with_lines(path: str | Path) -> Iterator[tuple[int, dict[str, Any] | RowError]]:
    """Yield (line from 1, object or what is wrong with it) of JSON lines or of one JSON array of objects.

    Raises DiceError when there is no such file, or an array is not closed or not the whole file.
    """
    path = Path(path)
    if not path.is_file():
        raise DiceError(f"{path}: no such file; expected JSON lines or a JSON array of objects.")
    data = path.read_bytes()
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[":
        yield from _array_rows(path, data)
        return
    for number, line in enumerate(data.splitlines(), 1):  # bytes: splits at \n, \r\n and \r only
        if line.strip():
            yield number, _object_of(line)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _object_of(line: bytes) -> dict[str, Any] | RowError:
    try:
        value = json.loads(line.decode("utf-8-sig"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return RowError(f"not valid JSON ({error})")
    return _object(value)


def _object(value: Any) -> dict[str, Any] | RowError:
    return value if isinstance(value, dict) else RowError(f"expected a JSON object, found {type(value).__name__}")


def _array_rows(path: Path, data: bytes) -> Iterator[tuple[int, dict[str, Any] | RowError]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DiceError(f"{path}: not UTF-8 text ({error}).") from error
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    position, line = text.index("[") + 1, 1 + text.count("\n", 0, text.index("["))

    def skip() -> None:
        nonlocal position, line
        while position < len(text) and text[position] in " \t\r\n":
            line += text[position] == "\n"
            position += 1

    skip()
    while position < len(text) and text[position] != "]":
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            # where a broken element ends is unknown, so the rest of the array is not read
            raise DiceError(f"{path}:{line}: not valid JSON ({error}).") from error
        yield line, _object(value)
        line += text.count("\n", position, end)
        position = end
        skip()
        if text[position : position + 1] not in ("]", ",", ""):
            raise DiceError(f"{path}:{line}: a comma is missing between two elements of the JSON array.")
        if text[position : position + 1] == ",":
            position += 1
            skip()
            if text[position : position + 1] == "]":
                raise DiceError(
                    f"{path}:{line}: nothing follows the last comma of the JSON array; is an element missing?"
                )
    if position >= len(text):
        raise DiceError(f"{path}:{line}: the JSON array has no end; the file is cut off.")
    position += 1
    skip()
    if position < len(text):
        raise DiceError(f"{path}:{line}: there is more behind the end of the JSON array; it would not be read.")


def check_rows(
    located: Iterable[tuple[int, Mapping[str, Any] | RowError]],
    path: str | Path,
    build: Callable[[Mapping[str, Any]], Pair],
    *,
    on_bad: OnBad = "refuse",
) -> tuple[list[Pair], list[BadRow]]:
    """Apply the rule for bad rows to the rows of `path`.

    `build` makes a pair from the fields that were read; it raises RowError, or KeyError for a missing field.
    Raises DiceError when `on_bad` is "refuse" and a row is bad.
    """
    rows: list[Pair] = []
    bad: list[BadRow] = []
    line_of: dict[str, int] = {}
    for line, values in located:
        name = None
        try:
            if isinstance(values, RowError):
                raise values
            name = str(values["id"]) if "id" in values else None
            row = build(values)
            name = row.id
            if row.id in line_of:
                raise RowError(f"duplicate id (first used at line {line_of[row.id]})")
        except KeyError as error:
            bad.append(BadRow(path=str(path), line=line, id=name, reason=f"missing field {error}"))
        except RowError as error:
            bad.append(BadRow(path=str(path), line=line, id=name, reason=str(error)))
        else:
            line_of[row.id] = line
            rows.append(row)
    if bad and on_bad == "refuse":
        more = f"; {len(bad) - 1} more bad rows" if len(bad) > 1 else ""
        raise DiceError(
            f"{bad[0]}{more}. Correct the file, or pass --on-bad skip to leave bad rows out and report them."
        )
    return rows, bad


def from_published(source: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A converter for rows as the authors publish them (deadlykitten4/DICE, training/RL/data).

    Infilling rows hold `id, pytorch_code, cuda_code, prefix, middle, suffix`; end-to-end programs hold
    `idx, level, pytorch_code, cuda_code` (empty) and `raw_answer`, which is kept in `origin`. Level 0, which one of
    their programs has, is no level of the benchmark: the program counts as not labelled. Rows of our own pass unchanged;
    a row without a source gets `source`.
    """

    def convert(values: Mapping[str, Any]) -> dict[str, Any]:
        row = {"source": source, **values}
        origin = row.get("origin", {})
        if not isinstance(origin, Mapping):
            raise RowError(f"field 'origin' must be an object, found {type(origin).__name__}")
        if "idx" in row and "id" not in row:
            row["id"] = row.pop("idx")
        if row.get("level") in (0, "0"):
            row["level"] = None
        if "raw_answer" in row:
            row["origin"] = {**origin, "raw_answer": row.pop("raw_answer")}
        return row

    return convert


def read_pairs(
    path: str | Path,
    *,
    on_bad: OnBad = "refuse",
    require_cuda: bool = True,
    convert: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
) -> tuple[list[Pair], list[BadRow]]:
    """Pairs of a file and the rows that were left out.

    `convert` turns a row of another format into our fields and may raise RowError or KeyError (a missing field).
    Raises DiceError (see `check_rows`).
    """

    def build(values: Mapping[str, Any]) -> Pair:
        return parse_pair(convert(values) if convert else values, require_cuda=require_cuda)

    return check_rows(rows_with_lines(path), path, build, on_bad=on_bad)
