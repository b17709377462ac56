"""Reading candidates: KernelBench run folders and JSON lines.

A folder holds `level_1_problem_19_sample_0_kernel.py` files (KernelBench scripts/generate_samples.py). A JSON-lines row
names its problem and carries the code, under any of the field names below; a row may bring its own problem, so that a
file of (PyTorch, CUDA) pairs needs no benchmark:

    problem   problem_id | id | level_id + task_id (CUDA-L1)
    sample    sample | sample_id, 0 when absent
    answer    text (a model's whole answer; the code is extracted) | code | cuda_code | custom_code
    problem's own code (optional)   problem_code | pytorch_code | ref_code
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dice.errors import DiceError
from dice.jsonl import read_objects, valid_text
from dice.kernels.problems.problem import Problem, level_and_number
from dice.kernels.records.extract import extract_code
from dice.kernels.records.job import Job

_RUN_FILE = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")
_PROBLEM_CODE = ("problem_code", "pytorch_code", "ref_code")
_CODE = ("code", "cuda_code", "custom_code")


@dataclass(frozen=True)
class Candidate:
    """One answer. `where` (file or file:line) is for error messages."""

    problem_id: str
    sample: int
    code: str | None
    no_code_reason: str
    problem_code: str | None
    where: str


def read_candidates(path: str | Path) -> list[Candidate]:
    """Read a run folder or a JSON-lines file. Raises DiceError naming the file and line of what cannot be used."""
    path = Path(path)
    if path.is_dir():
        found = list(_from_folder(path))
        if not found:
            raise DiceError(f"{path}: no file named like level_1_problem_19_sample_0_kernel.py in this folder.")
    elif path.is_file():
        found = [_from_row(row, f"{path}:{line}") for line, row in read_objects(path)]
        if not found:
            raise DiceError(f"{path}: the file holds no candidate.")
    else:
        raise DiceError(f"{path}: no such file or folder of candidates.")
    seen: dict[tuple[str, int], str] = {}
    for candidate in found:
        key = (candidate.problem_id, candidate.sample)
        if key in seen:
            raise DiceError(
                f"{candidate.where}: sample {candidate.sample} of {candidate.problem_id} "
                f"was already given at {seen[key]}."
            )
        seen[key] = candidate.where
    return found


def _from_folder(folder: Path) -> Iterator[Candidate]:
    for file in sorted(folder.iterdir()):
        match = _RUN_FILE.fullmatch(file.name)
        if match is None:
            continue
        level, number, sample = (int(group) for group in match.groups())
        code, reason = None, ""
        try:
            code = file.read_text(encoding="utf-8")
        except OSError as error:
            raise DiceError(f"{file}: cannot be read ({error.strerror}).") from error
        except UnicodeDecodeError as error:
            reason = f"the file is not UTF-8 text ({error})"
        yield Candidate(f"level{level}/{number}", sample, code, reason, None, str(file))


def _from_row(row: dict[str, Any], where: str) -> Candidate:
    if "level_id" in row and "task_id" in row:
        problem_id = f"level{row['level_id']}/{row['task_id']}"
    else:
        problem_id = row.get("problem_id", row.get("id"))
        if isinstance(problem_id, int) and not isinstance(problem_id, bool):
            problem_id = str(problem_id)
    if not isinstance(problem_id, str) or not problem_id or problem_id != valid_text(problem_id):
        raise DiceError(f"{where}: field 'problem_id' (or 'id') is missing or not a name.")
    sample = row.get("sample", row.get("sample_id", 0))
    if not isinstance(sample, int) or isinstance(sample, bool) or sample < 0:
        raise DiceError(f"{where}: field 'sample' must be a whole number from 0, found {sample!r}.")
    problem_code = _first_text(row, _PROBLEM_CODE, where)
    if problem_code is not None and problem_code != valid_text(problem_code):
        raise DiceError(f"{where}: the problem's code is not Unicode text; it holds a lone surrogate.")
    code, reason = _first_text(row, _CODE, where), ""
    given = [field for field in (*_CODE, "text") if field in row]
    if given and all(row[field] is None for field in given):
        code, reason = None, f"the row has no answer ('{given[0]}' is null)"
    elif code is None:
        text = _first_text(row, ("text",), where)
        if text is None:
            raise DiceError(f"{where}: no field 'text', 'code', 'cuda_code' or 'custom_code' with the answer.")
        extraction = extract_code(text)
        code, reason = extraction.code, extraction.reason
    elif not code.strip():
        code, reason = None, "the code is empty"
    if code is not None and code != valid_text(code):
        code, reason = None, "the code is not Unicode text: it holds a lone surrogate"
    return Candidate(problem_id, sample, code, reason, problem_code, where)


def _first_text(row: dict[str, Any], fields: tuple[str, ...], where: str) -> str | None:
    for field in fields:
        value = row.get(field)
        if value is None:
            continue
        if not isinstance(value, str):
            raise DiceError(f"{where}: field '{field}' must be text, found {type(value).__name__}.")
        return value
    return None


def make_jobs(candidates: Iterable[Candidate], problems: Iterable[Problem] | None) -> list[Job]:
    """Join candidates with their problems. Without `problems`, every candidate must bring its own.

    `level1/19`, all that a run folder or a row with `task_id` says, finds `level1/19_ReLU`; `level1/19_Tanh` does not. Raises
    DiceError for a candidate whose problem is unknown.
    """
    by_id: dict[str, Problem] = {}
    by_number: dict[tuple[int, int] | None, Problem] = {}
    for problem in problems or ():
        by_id[problem.id] = problem
        by_number[problem.level, problem.number] = problem
    jobs: dict[tuple[str, int], Job] = {}
    for candidate in candidates:
        if problems is None:
            if candidate.problem_code is None:
                raise DiceError(f"{candidate.where}: has no problem in its file; name the problems with --problems.")
            problem_id, code = candidate.problem_id, candidate.problem_code
        else:
            problem = by_id.get(candidate.problem_id)
            same_number = by_number.get(level_and_number(candidate.problem_id))
            if problem is None and "_" not in candidate.problem_id:
                problem = same_number
            if problem is None:
                but = f"; the one of this number is {same_number.id}" if same_number else ""
                raise DiceError(
                    f"{candidate.where}: problem {candidate.problem_id} is not among the {len(by_id)} problems given{but}."
                )
            problem_id, code = problem.id, problem.code
        if (problem_id, candidate.sample) in jobs:
            raise DiceError(f"{candidate.where}: sample {candidate.sample} of {problem_id} is given twice.")
        jobs[problem_id, candidate.sample] = Job(
            problem_id=problem_id,
            problem_code=code,
            sample=candidate.sample,
            code=candidate.code,
            no_code_reason=candidate.no_code_reason,
        )
    return list(jobs.values())
