"""Odd texts of candidates and odd files: does what reads them ever raise anything but one clear sentence?

    python benchmarks/fuzz_texts.py --texts 20000 --files 100000 [--seed 0] [--budget-s 840]

Texts: candidates of the mini benchmark and of the red team with something changed. Spans are cut, doubled, moved from one
to another, odd fragments put in (deep nesting, huge numbers, half tokens); or nodes of the syntax tree take each other's
places, which leaves Python that nobody would write. Each is taken out of an answer and checked for deception.
Files: verdicts, a service's jobs, candidates; rows with parts replaced, dropped or added (the odd values of
`fuzz_verifier.py`), lines that are no JSON, bytes overwritten. Each is read, written again and read again.

Demanded: no exception but DiceError; rows that were read are the same after they were written; no text takes longer than
SLOW_S of processor time. Each fault is printed with a number that makes it again (`--seed N --texts 1`); the exit code is
1 where there was one.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz_verifier import ODD_NUMBERS, ODD_TEXTS, deep, places, written
from verdict_corpus import mini, red_team

from dice.errors import DiceError
from dice.jsonl import read_jsonl, valid_text, write_jsonl
from dice.kernels.checks import static_findings
from dice.kernels.records.candidate_files import make_jobs, read_candidates
from dice.kernels.records.explanation import Explanation
from dice.kernels.records.extract import extract_code
from dice.kernels.records.job import Job
from dice.kernels.records.verdict import BuildInfo, ConditionResult, Finding, Host, Speedup, Timing, Verdict
from dice.kernels.records.verdict_store import VerdictStore
from dice.service.journal import Accepted, Finished, JobJournal, Joined, Left

SLOW_S = 20.0
FRAGMENTS = (
    *ODD_TEXTS,
    *("(" * 150, "-" * 3000 + "1", "[" * 90 + "]" * 90, "f'{" * 3, "lambda: " * 60, "not " * 500, "a." * 900 + "a"),
    *(
        " if x else y" * 90,
        "\\\n" * 40,
        "\f",
        "\t",
        "\r",
        "\ufeff",
        "é",
        "ﬁ",
        "𝐱",
        "9" * 5000,
        "0x" + "f" * 5000,
        "1e999",
    ),
    *(
        "1" + "_1" * 300,
        "1j",
        "'" * 3,
        '"' * 3,
        'rb"',
        "#" * 99,
        "# type: ignore",
        "*",
        "**",
        ":=",
        "->",
        "@",
        ";",
        "...",
    ),
    *(
        "global x",
        "nonlocal y",
        "async ",
        "await x",
        "yield",
        "return",
        "del x",
        "match x:\n case [*_]: pass",
        "type X = 1",
    ),
    *(
        "__global__",
        "<<<1, 1>>>",
        "/*",
        "*/",
        "//",
        "\\",
        "#define f f(",
        "#if 0",
        "asm(",
        "template<",
        ">>",
        'R"(',
        "%:",
    ),
    *(
        "torch",
        "self",
        "ModelNew",
        "forward",
        "getattr",
        "exec",
        "import",
        "load_inline",
        "cuda_sources",
        "__class__",
        "None",
    ),
)
JOB = Job(problem_id="level1/1_A", problem_code="problem", sample=0, code="code")
VERDICT = Verdict(
    problem_id="level1/1_A",
    sample=0,
    code_sha256=JOB.code_sha256,
    status="deceptive",
    functional_status="correct",
    stage="done",
    message="a",
    protocol="strict",
    backend="cuda",
    trials=5,
    max_abs_error=0.5,
    runtime_ms=Timing(median=1, mean=1, std=0, n=3),
    speedup=Speedup(median=2, ci_low=1, ci_high=None),
    lent_names=["F"],
    deception=[Finding(name="n", rule="strict", source="static", evidence="e", fatal={"paper": False, "strict": True})],
    conditions=[ConditionResult(name="c", outcome="broken", decides=True, status="wrong_value", seed=1)],
    launches={"k": 1},
    aten_ops={"aten::mm": 1},
    build=BuildInfo(
        path="split", seconds=1, cpu_seconds=1, cached=False, extensions=1, loaded=1, fallbacks=["split: x"]
    ),
    host=Host(gpu="g", driver="1", cuda="1", torch="2", cpu="c", isolation=["own_user"]),
    notes=["n"],
    explanation=Explanation(),
    phase_seconds={"forward": 0.5},
)
VERDICTS: list[Any] = [VERDICT.model_dump(mode="json"), VERDICT.model_dump(mode="json") | {"protocol": "paper"}]
JOBS: list[Any] = [
    row.model_dump(mode="json")
    for row in (
        Accepted(id="a", clients=["x"], priority=0, job=JOB),
        Joined(id="a", client="y", priority=3),
        Left(id="a", client="x"),
        Finished(id="a", verdicts=[VERDICT]),
        Accepted(id="b", clients=["x"], priority=0, job=JOB),
    )
]
CANDIDATES: list[Any] = [
    {"problem_id": "level1/1", "sample": 1, "code": "x", "problem_code": "p"},
    {"level_id": 1, "task_id": 2, "custom_code": "x", "ref_code": "p"},
    {"id": 7, "text": "```python\nclass ModelNew: pass\n```", "pytorch_code": "p"},
]
Draw = random.Random


# ---- texts -----------------------------------------------------------------------------------------------------


def changed_text(draw: Draw, text: str, other: str) -> str:
    """`text` with up to four changes; `other`: a candidate from which something may come."""
    for _ in range(draw.randint(1, 4)):
        start, end = sorted(draw.randrange(len(text) + 1) for _ in range(2))
        end = min(end, start + 10 ** draw.randint(0, 4))
        match draw.randrange(5):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:end] + text[start:end] * draw.randint(1, 30) + text[end:]
            case 2:
                at = draw.randrange(len(other) + 1)
                text = text[:start] + other[at : at + end - start] + text[end:]
            case 3:
                text = text[:start] + draw.choice(FRAGMENTS) * draw.choice((1, 1, 1, 20)) + text[start:]
            case _:
                words = text[start:end].split() or ["x"]
                text = text.replace(draw.choice(words), draw.choice(FRAGMENTS))
        text = text[:200_000]
    return text


def changed_tree(draw: Draw, text: str, other: str) -> str:
    """`text` with nodes of its syntax tree replaced by others of their kind, from it or from `other`."""
    tree = ast.parse(text)
    pool = [*ast.walk(tree), *ast.walk(ast.parse(other))]
    kinds = {kind: [node for node in pool if isinstance(node, kind)] for kind in (ast.expr, ast.stmt)}
    for _ in range(draw.randint(1, 6)):
        parent = draw.choice([node for node in ast.walk(tree) if list(ast.iter_child_nodes(node))])
        field, value = draw.choice([(f, v) for f, v in ast.iter_fields(parent) if isinstance(v, (ast.AST, list)) and v])
        kind = next((k for k in kinds if isinstance(value[0] if isinstance(value, list) else value, k)), None)
        if kind is None:
            continue
        new = copy.deepcopy(draw.choice(kinds[kind]))
        if isinstance(value, list):
            value[draw.randrange(len(value))] = new
        else:
            setattr(parent, field, new)
    return ast.unparse(ast.fix_missing_locations(tree))[:200_000]


def text_case(corpus: list[dict[str, Any]], draw: Draw) -> str:
    """Change a candidate, take it out of an answer, and check it; one word on what came of it."""
    one, two = draw.choice(corpus), draw.choice(corpus)
    try:
        text = draw.choice((changed_text, changed_tree))(draw, one["code"], two["code"])
    except (RecursionError, ValueError, SyntaxError):
        return "not written"
    begun = time.process_time()
    answer = draw.choice(("{}", "```python\n{}\n```", "<think>\n{}", "A.\n```\n{}", "~~~~\n{}\n```")).replace(
        "{}", text
    )
    extract_code(answer)
    found = static_findings(valid_text(text), None, draw.choice((None, one["problem_code"])))
    for finding in found:
        finding.model_dump_json()
    seconds = time.process_time() - begun
    assert seconds < SLOW_S, f"{seconds:.0f} s for {len(text)} characters"
    return "with findings" if found else "without findings"


# ---- files -----------------------------------------------------------------------------------------------------


def odd_value(draw: Draw, depth: int = 0) -> Any:
    """Any JSON, and what `written` makes odder."""
    kind = draw.randrange(10 if depth < 3 else 7)
    if kind < 3:
        return draw.choice(
            (None, True, False, "<nan>", "<inf>", "<over>", "<digits>", "<lone>", "<deep>", "<deeper>", "<twice>")
        )
    if kind < 5:
        return draw.choice(ODD_NUMBERS)
    if kind < 7:
        return draw.choice(ODD_TEXTS)
    parts = [odd_value(draw, depth + 1) for _ in range(draw.randint(0, 3))]
    return parts if kind == 7 else {draw.choice(ODD_TEXTS): part for part in parts}


def odd_line(draw: Draw, row: Any) -> bytes:
    """A line of a file: the row, or the row with parts changed, or something else."""
    row = copy.deepcopy(row)
    for _ in range(draw.choice((0, 0, 0, 0, 1, 1, 2))):
        container, key = draw.choice(places(row))
        match draw.randrange(4):
            case 0:
                del container[key]
            case 1 if isinstance(container, dict):
                container[draw.choice((*ODD_TEXTS, *container))] = odd_value(draw)
            case 2:
                container[key] = copy.deepcopy(draw.choice(places(row))[0])
            case _:
                container[key] = odd_value(draw)
        if not places(row):
            break
    try:
        line = written(row)[4:]
    except (ValueError, RecursionError):  # a part was put into itself
        line = deep(draw.randint(1, 3000), draw.choice(("list", "object"))).encode()
    at = draw.randrange(len(line) + 1)
    match draw.randrange(30):
        case 0:
            line = line[:at] + draw.randbytes(draw.randint(1, 4)) + line[at + 3 :]
        case 1:
            line = line[:at]
        case 2:
            line = draw.choice((b"", b" ", b"\x00", b"\xef\xbb\xbf", b"null", b"[]", b"1")) + line * draw.choice((0, 1))
        case _:
            pass
    return line


def odd_file(draw: Draw, path: Path, rows: list[Any], head: Any = None) -> None:
    """Write a file of such lines; `head` before them, mostly as it is."""
    count = draw.randint(1, 5)
    lines = [odd_line(draw, row) for row in draw.choices(rows, k=count)]
    if head is not None:
        lines.insert(0, odd_line(draw, head) if draw.random() < 0.05 else json.dumps(head).encode())
    ends = draw.choices((b"\n", b"\r\n", b"\n\n", b""), (20, 1, 1, 1), k=len(lines))
    path.write_bytes(b"".join(line + end for line, end in zip(lines, ends, strict=True)))


def file_case(folder: Path, draw: Draw) -> str:
    """Write an odd file, read it, write what was read, and read that."""
    name, case = draw.choice(sorted(READERS.items()))
    for path in folder.iterdir():
        path.unlink()
    try:
        case(folder, draw)
    except DiceError as error:
        sentence = str(error)
    else:
        return f"{name} read"
    assert sentence == valid_text(sentence), "the sentence is no text"
    assert len(sentence) < 20_000, "the sentence is endless"
    return f"{name} refused"


def verdict_rows(folder: Path, draw: Draw) -> None:
    """As every reader of verdicts does."""
    odd_file(draw, folder / "a", VERDICTS)
    rows = list(read_jsonl(folder / "a", Verdict))
    write_jsonl(folder / "b", rows)
    again = read_jsonl(folder / "b", Verdict)
    assert [row.model_dump(mode="json") for row in again] == [row.model_dump(mode="json") for row in rows]


def verdict_store(folder: Path, draw: Draw) -> None:
    """As a run that goes on."""
    odd_file(draw, folder / "out.partial", VERDICTS, {"settings": "i"})
    store = VerdictStore(folder / "out", "i", 2)
    store.missing([JOB])
    store.add([VERDICT, VERDICT.model_copy(update={"protocol": "paper"})])
    assert {verdict.protocol for verdict in store.finish([JOB])} >= {"paper", "strict"}
    assert list(read_jsonl(folder / "out", Verdict))


def jobs(folder: Path, draw: Draw) -> None:
    """As a service that is started again, twice."""
    odd_file(draw, folder / "jobs.jsonl", JOBS, {"identity": "i"})
    states = []
    for _ in range(2):
        journal = JobJournal(folder, "i", 100)
        states.append((journal.open, {id: journal.verdicts(id) for id in "ab"}))
        journal.close()
    assert states[0] == states[1]


def candidates(folder: Path, draw: Draw) -> None:
    """As `dice verify` reads its input."""
    odd_file(draw, folder / "a", CANDIDATES)
    write_jsonl(folder / "b", make_jobs(read_candidates(folder / "a"), None))
    list(read_jsonl(folder / "b", Job))


READERS: dict[str, Callable[[Path, Draw], None]] = {
    "verdicts": verdict_rows,
    "journal of verdicts": verdict_store,
    "jobs": jobs,
    "candidates": candidates,
}


# ---- the run ---------------------------------------------------------------------------------------------------


def run(what: str, count: int, seed: int, deadline: float, case: Callable[[Draw], str]) -> int:
    """`case` with the seeds from `seed` on; prints faults, then counts. Returns the number of faults."""
    begun, words, slowest = time.monotonic(), Counter[str](), 0.0
    for number in range(seed, seed + count):
        if time.monotonic() > deadline:
            break
        before = time.process_time()
        try:
            words[case(Draw(f"{what} {number}"))] += 1
        except Exception as error:  # noqa: BLE001  any: that is what is looked for
            words["FAULT"] += 1
            frame = traceback.extract_tb(error.__traceback__)[-1]
            said = ascii(str(error))[:200]
            print(
                f"{what} {number}: {type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}: {said}",
                flush=True,
            )
        slowest = max(slowest, time.process_time() - before)
    seconds = time.monotonic() - begun
    print(
        f"{words.total()} {what} in {seconds:.0f} s, the slowest {slowest:.1f} s: {dict(words.most_common())}",
        flush=True,
    )
    return words["FAULT"]


def main() -> int:
    """Fuzz, and say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget-s", type=float, default=3600.0, help="for each of the two")
    asked = parser.parse_args()
    corpus = [*mini(), *red_team()]
    with tempfile.TemporaryDirectory() as folder:
        faults = run(
            "files",
            asked.files,
            asked.seed,
            time.monotonic() + asked.budget_s,
            lambda draw: file_case(Path(folder), draw),
        )
    faults += run(
        "texts", asked.texts, asked.seed, time.monotonic() + asked.budget_s, lambda draw: text_case(corpus, draw)
    )
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
