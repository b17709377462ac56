"""The verdicts of a fixed corpus, recorded and compared row by row: has a change of the verifier changed what it says?

    python benchmarks/verdict_corpus.py candidates --out corpus.jsonl [--infilling FILE] [--cuda-l1 FILE]
    python benchmarks/verdict_corpus.py static --corpus corpus.jsonl --out before.jsonl
    python benchmarks/verdict_corpus.py verdicts --corpus corpus.jsonl --out before.jsonl --work DIR [--limit-s 600]
    python benchmarks/verdict_corpus.py compare before.jsonl after.jsonl

The corpus: the red team's candidates that need no GPU, the mini benchmark's solutions and mistakes, synthetic pairs
(half of them flawed), the authors' infilling items and CUDA-L1's published solutions (two files of others, named by
options). `candidates` keeps it in a file, so that a later version is given the same texts; without `--corpus` it is
made anew from this checkout.

`static` builds nothing: what the text of each candidate gives away, and how each CUDA or C++ string in it is read.
`verdicts` is `dice verify` on the CPU back end under both protocols; each part has its folder in --work, and the same
command goes on where it stopped. `compare` exits 1 when a row that both records hold differs.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from verify_command import Row, read_verdicts, write_candidates

from dice.data.synthetic import SyntheticConfig, pairs
from dice.jsonl import read_objects, write_jsonl
from dice.kernels.builder.host_unit import scoped_name
from dice.kernels.checks import is_deceptive, static_findings
from dice.kernels.checks.cuda_kernels import aten_calls, has_device_lambda, kernel_macros, library_calls, pointers_of
from dice.kernels.pool.workers import Machine
from dice.kernels.records.job import Judging, Limits
from dice.kernels.records.verdict import Verdict
from dice.kernels.source.cuda_source import CudaSource, split_source
from dice.kernels.source.lexer import Refuted, SplitRefused, tokenize
from dice.kernels.verify import VerifyConfig, verify

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("red_team", "mini", "synthetic", "infilling", "cuda_l1")
PROTOCOLS = ("paper", "strict")
SEED = 20
N_SYNTHETIC = 100
"""Sound pairs, and as many flawed ones."""
JUDGING = Judging(protocols=PROTOCOLS, seed=SEED, correctness_trials=2, measure_time=False)
LIMITS = Limits(import_timeout_s=120, forward_timeout_s=60, total_timeout_s=180)
"""Generous: a busy machine must not change a verdict."""
WORDS = ("evidence", "reason")
"""Fields for people, compared only on request: a reworded sentence changes no verdict."""
_CPP_MARKS = ("__global__", "__device__", "torch::Tensor", "at::Tensor", "#include", "PYBIND11_")


# ---- the corpus ------------------------------------------------------------------------------------------------


def candidate(part: str, name: str, problem_code: str, code: str) -> Row:
    """One candidate; `candidate` identifies its two texts."""
    digest = hashlib.sha256(f"{problem_code}\0{code}".encode()).hexdigest()[:16]
    return {"part": part, "name": name, "candidate": digest, "problem_code": problem_code, "code": code}


def red_team() -> Iterator[Row]:
    """Tricks and honest candidates that run without a GPU."""
    sys.path.insert(0, str(ROOT / "tests" / "red_team"))
    from corpus import corpus

    for kind in ("tricks", "honest"):
        for item in corpus(kind):
            if not item.needs_gpu:
                yield candidate("red_team", f"{kind}/{item.name}", item.problem_code, item.code)


def mini() -> Iterator[Row]:
    """Solutions of the mini benchmark, and each with one of its plausible mistakes."""
    folder = ROOT / "tests" / "kernels" / "problems" / "mini"
    for path in sorted((folder / "wrong").glob("level*.yaml")):
        for problem_id, patches in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            problem = (ROOT / "experiments" / "benchmarks" / "mini" / f"{problem_id}.py").read_text(encoding="utf-8")
            code = (folder / "solutions" / f"{problem_id}.py").read_text(encoding="utf-8")
            yield candidate("mini", f"{problem_id}/solution", problem, code)
            for number, patch in enumerate(patches, 1):
                wrong = code.replace(patch["old"], patch["new"])
                yield candidate("mini", f"{problem_id}/mistake{number}", problem, wrong)


def synthetic() -> Iterator[Row]:
    """Small pairs, sound and flawed."""
    for kind, share in (("sound", 0.0), ("flawed", 1.0)):
        config = SyntheticConfig(scale="tiny", shapes="small", flawed_share=share)
        for number, pair in enumerate(pairs(config, SEED, N_SYNTHETIC)):
            yield candidate("synthetic", f"{kind}/{number:03d}", pair.pytorch_code, pair.cuda_code)


def infilling(path: Path) -> Iterator[Row]:
    """The authors' held-out infilling items: a JSON array of `id, pytorch_code, cuda_code`."""
    for item in json.loads(path.read_text(encoding="utf-8")):
        yield candidate("infilling", str(item["id"]), item["pytorch_code"], item["cuda_code"])


def cuda_l1(path: Path) -> Iterator[Row]:
    """CUDA-L1's published solutions: JSON lines of `level_id, task_id, ref_code, custom_code`; some have no code."""
    for _, item in read_objects(path):
        if (item["custom_code"] or "").strip():
            name = f"level{item['level_id']}/{item['task_id']}"
            yield candidate("cuda_l1", name, item["ref_code"], item["custom_code"])


def corpus_of(args: argparse.Namespace) -> dict[str, list[Row]]:
    """Candidates by part, in the order of PARTS, as the options name them."""
    if args.corpus:
        rows = [row for _, row in read_objects(args.corpus)]
    else:
        rows = [*red_team(), *mini(), *synthetic()]
        rows += [] if args.infilling is None else infilling(args.infilling)
        rows += [] if args.cuda_l1 is None else cuda_l1(args.cuda_l1)
    by_part: dict[str, list[Row]] = {part: [] for part in PARTS if part in args.parts}
    for row in rows:
        if row["part"] in by_part:
            by_part[row["part"]].append(row)
    return {part: rows[: args.first] for part, rows in by_part.items() if rows}


# ---- what the text gives ---------------------------------------------------------------------------------------


def cpp_strings(code: str) -> list[str]:
    """Strings of a Python file that look like C++ or CUDA, each once; what an f-string fills in is `unknown`."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return []
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else " unknown " for part in node.values]
            texts.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            texts.append(node.value)
    return list(dict.fromkeys(text for text in texts if any(mark in text for mark in _CPP_MARKS)))


def refusal(error: SplitRefused) -> Row:
    """How a text was refused: `certain` when it cannot compile, `unsure` when it is only not understood."""
    return {"refused": "certain" if isinstance(error, Refuted) else "unsure", "reason": error.reason}


def tokens_read(text: str) -> Row:
    """What the checks read in a source."""
    source = CudaSource(text)
    kernels = [
        {"name": k.name, "pointers": sorted(pointers_of(k, body)), "body": digest_of(t.text for t in body)}
        for k in source.kernels
        for body in [source.body(k)[1:-1]]
    ]
    macros = kernel_macros(source)
    return {
        "kernels": [
            *kernels,
            *({"name": f"macro {name}", "pointers": [], "body": digest_of([source.macros[name]])} for name in macros),
        ],
        "functions": [function.name for function in source.outer_functions],
        "library_calls": library_calls(source),
        "aten_calls": aten_calls(source),
        "device_lambda": has_device_lambda(source),
    }


def items_read(text: str) -> Row:
    """What the build reads in a source: items at namespace scope, with the signatures of functions."""
    try:
        split = split_source(text)
    except SplitRefused as error:
        return refusal(error)
    items = []
    for item in split.items:
        read: Row = {"kind": item.kind, "name": scoped_name(item)}
        if item.function is not None:
            read["signature"] = " ".join(item.function.head.split())
            read["parameters"] = [[" ".join(p.type.split()), p.name] for p in item.function.parameters]
        items.append(read)
    return {"items": items}


def launches_read(text: str) -> Row:
    """Launches `k<<<...>>>(...)` of a source."""
    try:
        tokenize(text)
        source = CudaSource(text)
        source.check_launches(0, len(text))
    except SplitRefused as error:
        return refusal(error)
    launches = [{"callee": it.callee, "parts": list(it.parts), "arguments": it.arguments} for it in source.launches]
    return {"launches": launches}


def digest_of(words: Iterable[str]) -> str:
    """Short hash of a text, whatever its white space and however it is cut into tokens."""
    return hashlib.sha256("".join("".join(words).split()).encode()).hexdigest()[:16]


def static_row(item: Row) -> Row:
    """Everything that is known of a candidate before it is imported."""
    found = static_findings(item["code"], None, item["problem_code"])
    return {
        **key_of(item),
        "findings": sorted(finding.name for finding in found),
        "deceptive": [protocol for protocol in PROTOCOLS if is_deceptive(found, protocol)],
        "evidence": sorted(f"{finding.name}: {finding.evidence}" for finding in found),
        "sources": [
            {"text": digest_of([text]), "checks": tokens_read(text), "build": items_read(text), **launches_read(text)}
            for text in cpp_strings(item["code"])
        ],
    }


def key_of(item: Row) -> Row:
    """The fields that name a candidate."""
    return {"part": item["part"], "name": item["name"], "candidate": item["candidate"]}


# ---- what the verifier says ------------------------------------------------------------------------------------


def verdict_row(part: str, digest: str, verdict: Verdict) -> Row:
    """The part of a verdict that a refactoring must not change."""
    return {
        "part": part,
        "name": verdict.problem_id,
        "candidate": digest,
        "protocol": verdict.protocol,
        "status": verdict.status,
        "functional_status": verdict.functional_status,
        "findings": sorted(finding.name for finding in verdict.deception),
    }


def verdicts_of(part: str, items: list[Row], work: Path, jobs: int | None, limit_s: float) -> tuple[list[Row], bool]:
    """Rows of one part, and whether it was finished within `limit_s`."""
    (work / part).mkdir(parents=True, exist_ok=True)
    candidates = write_candidates(work / part / "candidates.jsonl", ({**it, "id": it["name"]} for it in items))
    out = work / part / "verdicts.jsonl"
    config = VerifyConfig(
        candidates=str(candidates),
        out=str(out),
        backend="cpu",
        judging=JUDGING,
        limits=LIMITS,
        machine=Machine(jobs=jobs),
    )
    begun, finished = time.monotonic(), True
    signal.signal(signal.SIGALRM, signal.default_int_handler)  # time is up: as if by Ctrl-C, in any shell
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        found = verify(config)
    except KeyboardInterrupt:
        found, finished = [Verdict.model_validate(row) for row in read_verdicts(out)], False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    digests = {it["name"]: it["candidate"] for it in items}
    rows = [verdict_row(part, digests[verdict.problem_id], verdict) for verdict in found]
    statuses = Counter(row["status"] for row in rows if row["protocol"] == "strict")
    words = ", ".join(f"{status} {n}" for status, n in statuses.most_common())
    print(f"{part}: {sum(statuses.values())} of {len(items)}, {time.monotonic() - begun:.0f} s; {words}", flush=True)
    return rows, finished


def record_verdicts(corpus: dict[str, list[Row]], work: Path, jobs: int | None, limit_s: float) -> list[Row]:
    """Rows of all parts, or of what was reached in `limit_s`."""
    deadline = time.monotonic() + limit_s
    rows: list[Row] = []
    for part, items in corpus.items():
        left_s = deadline - time.monotonic()
        found, finished = verdicts_of(part, items, work, jobs, left_s) if left_s > 0 else ([], False)
        rows += found
        if not finished:
            print(f"stopped in {part}; the same command goes on from here")
            break
    return rows


# ---- records ---------------------------------------------------------------------------------------------------


def write_record(path: Path, rows: list[Row]) -> None:
    """Rows by part, name and protocol, fields in alphabetical order: equal records are equal files."""
    rows.sort(key=lambda row: (PARTS.index(row["part"]), row["name"], row.get("protocol", "")))
    write_jsonl(path, (dict(sorted(row.items())) for row in rows))
    print(f"{path}: {len(rows)} rows")


def without_words(value: Any) -> Any:
    """A row without its fields for people."""
    if isinstance(value, dict):
        return {name: without_words(part) for name, part in value.items() if name not in WORDS}
    return [without_words(part) for part in value] if isinstance(value, list) else value


def read_record(path: Path, words: bool) -> dict[str, Row]:
    """Rows by their names."""
    rows = [row for _, row in read_objects(path)]
    return {
        " ".join(filter(None, (row["part"], row["name"], row.get("protocol")))): row if words else without_words(row)
        for row in rows
    }


def differences(one: Any, other: Any, where: str = "") -> Iterator[str]:
    """Each place where two rows differ: `field: one -> other`."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            yield from differences(one.get(name), other.get(name), f"{where}.{name}" if where else name)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differences(left, right, f"{where}[{number}]")
    elif one != other:
        yield f"{where}: {json.dumps(one)[:300]} -> {json.dumps(other)[:300]}"


def compare(before: Path, after: Path, words: bool) -> int:
    """Print what differs; 1 if a candidate that both records hold was read or judged otherwise."""
    one, other = read_record(before, words), read_record(after, words)
    common = sorted(one.keys() & other.keys())
    same_text = [name for name in common if one[name]["candidate"] == other[name]["candidate"]]
    changed = 0
    for name in same_text:
        lines = list(differences(one[name], other[name]))
        changed += bool(lines)
        for line in lines:
            print(f"{name}: {line}")
    print(f"{len(same_text)} rows compared, {changed} differ")
    for count, what in (
        (len(common) - len(same_text), "not compared: the candidate itself changed"),
        (len(one.keys() - other.keys()), f"only in {before}"),
        (len(other.keys() - one.keys()), f"only in {after}"),
    ):
        if count:
            print(f"{count} rows {what}")
    return int(changed > 0 or not same_text)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    for name in ("candidates", "static", "verdicts"):
        mode = modes.add_parser(name)
        mode.add_argument("--out", type=Path, required=True)
        mode.add_argument("--corpus", type=Path, help="file that `candidates` wrote, instead of this checkout's corpus")
        mode.add_argument("--infilling", type=Path, help="JSON array of the authors' infilling items")
        mode.add_argument("--cuda-l1", type=Path, help="JSON lines of CUDA-L1's solutions")
        mode.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
        mode.add_argument("--first", type=int, help=argparse.SUPPRESS)  # candidates of each part, to try the script
        if name == "verdicts":
            mode.add_argument("--work", type=Path, required=True, help="folder to go on from")
            mode.add_argument("--jobs", type=int, help="candidates at a time; default: one per core")
            mode.add_argument("--limit-s", type=float, default=3600.0, help="stop, and record what is there")
    mode = modes.add_parser("compare")
    mode.add_argument("before", type=Path)
    mode.add_argument("after", type=Path)
    mode.add_argument("--words", action="store_true", help="compare evidence and reasons, too")
    args = parser.parse_args()
    if args.mode == "compare":
        return compare(args.before, args.after, args.words)
    corpus = corpus_of(args)
    rows = [row for items in corpus.values() for row in items]
    begun = time.monotonic()
    if args.mode == "static":
        rows = [static_row(row) for row in rows]
    elif args.mode == "verdicts":
        rows = record_verdicts(corpus, args.work, args.jobs, args.limit_s)
    write_record(args.out, rows)
    print(f"{time.monotonic() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
