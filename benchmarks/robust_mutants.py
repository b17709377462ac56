"""Does the protocol `robust` find what `paper` lets pass? Mutants of right kernels, made by rules over their CUDA text.

    python benchmarks/robust_mutants.py make --work DIR [--seed 1] [--each 4] [--synthetic 60] [--shapes small]
        [--most-elements 1048576] [--pairs FILE ...]
    python benchmarks/robust_mutants.py judge --work DIR [--of mutants] [--count 100] [--jobs 1] [--limit-s 540]
    python benchmarks/robust_mutants.py report --work DIR
    python benchmarks/robust_mutants.py missed --work DIR

make    DIR/right.jsonl and DIR/mutants.jsonl: the mini benchmark's solutions, synthetic pairs and the given files of pairs,
        and of each up to `--each` mutants of different rules, in an order that the seed fixes. A rule changes one place: a
        bound, a tail, a stride, an accumulator, a barrier, a neutral element, a batch or a length that is taken for granted.
        Synthetic programs have the sizes meant for a CPU; of the others, those with larger inputs are left out.
judge   the next `--count` of a file on the CPU back end under `paper` and `robust`, which ends at the first break. Verdicts
        are appended to DIR/mutants.verdicts.jsonl; whatever the time limit cuts off is judged by the next call.
report  of the mutants that pass `paper`, how many `robust` finds, by kind, rule and condition; of the right kernels, how many
        it blames; and what both protocols cost.
missed  the mutants that it does not find and nobody has read, each as a difference to its original.

A mutant need not be wrong: `<` instead of `<=` in a loop that never gets there changes nothing. Whether one is wrong is
decided by reading its text. robust_set_aside.jsonl names the mutants (by the hash of their code) that compute the same as
their original for every input that the reference accepts, with the argument; its reasons are those of `REASONS` alone. One
that is set aside and found all the same is an error of the reading, and the report says so. Mutants of a kernel that `robust`
blames itself are left out.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import math
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch
from torch.utils._pytree import tree_leaves
from verify_command import Row, read_pairs, verify, write_candidates

from dice.data.synthetic import SyntheticConfig, pairs
from dice.evaluation.score import wilson
from dice.kernels.api import load_mini

SOLUTIONS = Path(__file__).resolve().parents[1] / "tests" / "kernels" / "problems" / "mini" / "solutions"
_FLAGS = (
    "--backend",
    "cpu",
    "--set",
    'judging.protocols=["paper","robust"]',
    "--set",
    "judging.first_break=true",
    "--seed",
    "1",
    "--trials",
    "1",
    "--set",
    "machine.threads=1",
)
SET_ASIDE = Path(__file__).with_name("robust_set_aside.jsonl")
REASONS = {
    "same_value": "the changed expression has the same value whenever it is evaluated: launch or weights fix its terms",
    "no_more_steps": "a loop or branch is taken for the same threads and steps: weights, launch or reference fix sizes",
    "absorbed": "what differs is multiplied by 0, written again with the same value, or below all that it is compared with",
    "ordered_anyway": "no thread reads between the neighbouring barriers what another one writes there",
}
"""Why a mutant may compute the same as its original for every input that the reference accepts."""
_GLOBAL = re.compile(r"__(?:global|device)__")

Rule = Callable[[str, random.Random], str | None]
"""CUDA text -> the text with one change; None where the rule finds no place."""


def _one(pattern: str, new: str | Callable[[re.Match[str]], str]) -> Rule:
    """A rule that replaces one match of `pattern`, drawn from all that stand behind the first kernel's beginning."""
    compiled = re.compile(pattern)

    def change(text: str, draw: random.Random) -> str | None:
        first = _GLOBAL.search(text)
        found = [match for match in compiled.finditer(text, first.start() if first else 0) if not _said(text, match)]
        if not found:
            return None
        match = draw.choice(found)
        return text[: match.start()] + (match.expand(new) if isinstance(new, str) else new(match)) + text[match.end() :]

    return change


def _said(text: str, match: re.Match[str]) -> bool:
    """Whether the place stands in a comment or in a message."""
    line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
    return "//" in line or "TORCH_CHECK" in line or line.count('"') % 2 == 1


def _unless(word: str, pattern: str, new: str, other: str) -> Rule:
    """A rule that writes `new`, or `other` where the text has `word`: blocks of 256 step by 256 anyway."""
    return lambda text, draw: _one(pattern, other if word in text else new)(text, draw)


_TERM = r"[A-Za-z_]\w*(?:\.\w+)?"
_ZERO = r"0(?:\.0?f?)?"
_INDEX = r"(?:idx|index|i|j|k|row|col|column|c|t|tid|x|y|e|element|gid|position|pos)\w*"
KINDS: dict[str, dict[str, Rule]] = {
    "bounds": {
        "bound_one_more": _one(rf"(if\s*\(\s*{_INDEX}\s*)<(\s*{_TERM}\s*\))", r"\1<=\2"),
        "bound_one_less": _one(rf"(if\s*\(\s*{_INDEX}\s*)<(\s*)({_TERM})(\s*\))", r"\1<\2\3 - 1\4"),
        "return_one_late": _one(rf"(if\s*\(\s*{_INDEX}\s*)>=(\s*{_TERM}\s*\)\s*\{{?\s*return)", r"\1>\2"),
        "no_bound": _one(rf"if\s*\(\s*{_INDEX}\s*<\s*{_TERM}\s*\)", "if (true)"),
        "loop_one_more": _one(rf"(for\s*\([^;]*;\s*\w+\s*)<(\s*{_TERM}\s*;)", r"\1<=\2"),
        "loop_one_less": _one(rf"(for\s*\([^;]*;\s*\w+\s*)<(\s*)({_TERM})(\s*;)", r"\1<\2\3 - 1\4"),
    },
    "tails": {
        "grid_rounded_down": _one(rf"\(\s*({_TERM})\s*\+\s*({_TERM}|\d+)\s*-\s*1\s*\)\s*/\s*\2", r"(\1 / \2)"),
        "grid_constant_down": _one(rf"\(\s*({_TERM})\s*\+\s*(?:255|127|511|1023|63|31)\s*\)\s*/\s*(\d+)", r"(\1 / \2)"),
        "tail_unguarded": _one(rf"(=\s*){_TERM}\s*<\s*{_TERM}\s*\?\s*([^:;?]+?)\s*:\s*{_ZERO}(?=[;,)])", r"\1\2"),
        "tail_half_guarded": _one(rf"\s*&&\s*{_TERM}\s*<\s*{_TERM}(\s*\?[^:;?]+?:\s*{_ZERO}[;,)])", r"\1"),
    },
    "strides": {
        "stride_of_loop": _one(r"\+=\s*(?:blockDim|gridDim)\.x\s*\*\s*(?:blockDim|gridDim)\.x", "+= blockDim.x"),
        "stride_fixed": _unless("256", r"\+=\s*blockDim\.x(?=\s*\))", "+= 256", "+= 512"),
        "step_fixed": _unless("256", r"blockDim\.x\s*/\s*2", "128", "64"),
    },
    "accumulators": {
        "coarse_accumulator": _one(
            r"(\b\w*(?:sum|acc|total|value|result)\w*\s*\+=\s*)([^;]+);", r"\1(float)(int)((\2) * 1024.0f) / 1024.0f;"
        ),
        "no_reset": _one(rf"(float\s+\w*(?:sum|acc|total)\w*\s*=\s*){_ZERO};", r"\g<1>1e-3f;"),
    },
    "barriers": {
        "no_barrier": _one(r"__syncthreads\(\);", ""),
        "no_warp_barrier": _one(r"__syncwarp\(\);", ""),
        "no_atomic": _one(r"atomicAdd\(\s*&?([\w\[\]>.\-+* ]+?)\s*,\s*([^;]+)\);", r"\1 += \2;"),
    },
    "neutral elements": {
        "maximum_from_zero": _one(
            r"-\s*(?:INFINITY|FLT_MAX|1e\d+f?|std::numeric_limits<float>::(?:infinity|max)\(\))", "0.0f"
        ),
        "maximum_from_small": _one(r"-\s*(?:INFINITY|FLT_MAX)", "-1e2f"),
        "minimum_from_small": _one(r"(=\s*)(?:INFINITY|FLT_MAX)(?=;)", r"\g<1>1e2f"),
        "product_from_zero": _one(r"(float\s+\w*(?:prod)\w*\s*=\s*)1(?:\.0?f?)?;", r"\g<1>0.0f;"),
        "padding_of_one": _one(r"(\?\s*[^:;?]+?\s*:\s*)0\.0f?", r"\g<1>1e-4f"),
    },
    "values": {
        "no_maximum_subtracted": _one(r"(exp[f]?\(\s*)([^()]+?)\s*-\s*\w*max\w*(\s*\))", r"\1\2\3"),
        "no_epsilon": _one(r"(rsqrtf?\([^()]*?)\+\s*(?:eps|epsilon|1e-\d+f?)\b", r"\1"),
        "positive_only": _one(r"fabsf?\(([^()]+)\)", r"(\1)"),
    },
    "batch or length": {
        "size_assumed": lambda text, draw: _assumed(text, draw, r"(int(?:64_t)?\s+\w+\s*=\s*)\w+\.size\((\d)\);"),
        "count_assumed": lambda text, draw: _assumed(text, draw, r"(int(?:64_t)?\s+\w+\s*=\s*)\w+\.numel\(\);"),
    },
}
RULES = {name: rule for rules in KINDS.values() for name, rule in rules.items()}
KIND_OF = {name: kind for kind, rules in KINDS.items() for name in rules}


def _assumed(text: str, draw: random.Random, pattern: str) -> str | None:
    """A size that is read from a tensor becomes the number that it is for the problem's inputs; the mutant is marked with
    the place, and `filled` puts the number in."""
    return _one(pattern, lambda match: f"{match.group(1)}ASSUMED({match.group(0).split('=', 1)[1].strip(' ;')});")(
        text, draw
    )


_ASSUMED = re.compile(r"ASSUMED\((\w+)\.(?:size\((\d)\)|numel\(\))\)")
_MARK = """
static int64_t assumed(const char* key, int64_t now) {
    static std::map<std::string, int64_t> first;
    return first.emplace(key, now).first->second;
}
"""


def filled(text: str) -> str:
    """A mutant that assumes a size keeps the first one that it sees, as if the author had written the number down."""
    if not _ASSUMED.search(text):
        return text
    text = re.sub(r"ASSUMED\(([^;]*)\);", r'assumed("\1", \1);', text)
    include = "#include <torch/extension.h>\n"
    head = f"#include <map>\n#include <string>\n{_MARK}"
    return text.replace(include, include + head, 1) if include in text else include + head + text


_SOURCE = re.compile(
    r"(?P<quotes>'''|\"\"\")(?P<text>(?:(?!(?P=quotes)).)*?__global__(?:(?!(?P=quotes)).)*)(?P=quotes)", re.DOTALL
)


def mutants(row: Row, most: int, draw: random.Random) -> Iterator[Row]:
    """Up to `most` mutants of a right kernel, each by another rule."""
    source = _SOURCE.search(row["code"])
    if source is None:
        return
    names, made = list(RULES), 0
    draw.shuffle(names)
    for name in names:
        text = RULES[name](source["text"], draw)
        if text is None or text == source["text"]:
            continue
        made += 1
        code = row["code"][: source.start("text")] + filled(text) + row["code"][source.end("text") :]
        yield {**row, "id": f"{row['id']}~{name}", "code": code}
        if made == most:
            return


def right_kernels(synthetic: SyntheticConfig, count: int, seed: int, most: int, files: list[str]) -> list[Row]:
    """Solutions of the mini benchmark, `count` synthetic pairs, pairs of files; each text once.

    Left out are problems with inputs of more than `most` elements, which cost minutes on a CPU.
    """
    rows = [
        {"id": problem.id, "problem_code": problem.code, "code": (SOLUTIONS / f"{problem.id}.py").read_text()}
        for problem in load_mini("cpu")
    ]
    for number, pair in enumerate(pairs(synthetic, seed, count)):
        rows.append({"id": f"synthetic/{number}", "problem_code": pair.pytorch_code, "code": pair.cuda_code})
    for path in files:
        rows += read_pairs(path)
    return [row for row in {row["code"]: row for row in rows}.values() if elements(row["problem_code"]) <= most]


def elements(problem_code: str) -> float:
    """Of all inputs of a problem together; infinitely many where it draws them on a GPU."""
    names: Row = {"__name__": "problem"}
    exec(problem_code, names)
    try:
        inputs = names["get_inputs"]()
    except AssertionError:  # PyTorch without CUDA
        return math.inf
    return sum(leaf.numel() for leaf in tree_leaves(inputs) if torch.is_tensor(leaf))


def make(work: Path, seed: int, each: int, rows: list[Row]) -> None:
    """Write right kernels and their mutants, both in an order that the seed fixes."""
    work.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)
    broken = [mutant for row in rows for mutant in mutants(row, each, draw)]
    draw.shuffle(rows)
    draw.shuffle(broken)
    write_candidates(work / "right.jsonl", rows)
    write_candidates(work / "mutants.jsonl", broken)
    counts = Counter(row["id"].rpartition("~")[2] for row in broken)
    print(f"{len(rows)} right kernels, {len(broken)} mutants: {dict(counts.most_common())}")


def judge(work: Path, of: str, count: int, limit_s: float, jobs: int) -> None:
    """Verdicts of the next `count` candidates of a file that have none yet."""
    out = work / f"{of}.verdicts.jsonl"
    done = judged(out)
    rows = [json.loads(line) for line in (work / f"{of}.jsonl").read_text().splitlines()]
    left = [row for row in rows if row["problem_id"] not in done]
    piece = work / f"{of}.piece.jsonl"
    piece.write_text("".join(json.dumps(row) + "\n" for row in left[:count]))
    part = work / f"{of}.piece.verdicts.jsonl"
    for old in work.glob(f"{part.name}*"):
        old.unlink()
    wall_s, verdicts = verify(piece, part, *_FLAGS, "--jobs", str(jobs), limit_s=limit_s)
    found = both_protocols(verdicts)
    with out.open("a") as file:
        for both in found.values():
            file.writelines(json.dumps(both[protocol]) + "\n" for protocol in ("paper", "robust"))
    print(f"{of}: {len(found)} more judged in {wall_s:.0f} s, {len(done) + len(found)} of {len(rows)}")


def both_protocols(rows: Iterable[Row]) -> dict[str, dict[str, Row]]:
    """Candidate -> protocol -> verdict, of those that have both."""
    found: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        found[row["problem_id"]][row["protocol"]] = row
    return {name: both for name, both in found.items() if len(both) == 2}


def judged(path: Path) -> dict[str, dict[str, Row]]:
    """What was judged so far, in one file."""
    return both_protocols(json.loads(line) for line in path.read_text().splitlines()) if path.exists() else {}


def digest(code: str) -> str:
    """Names a mutant by its text."""
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def set_aside() -> dict[str, Row]:
    """Hash of a mutant's code -> {reason, why}, as read."""
    rows = [json.loads(line) for line in SET_ASIDE.read_text().splitlines()] if SET_ASIDE.exists() else []
    unknown = {row["reason"] for row in rows} - REASONS.keys()
    if unknown:
        sys.exit(f"{SET_ASIDE.name}: no reason is called {', '.join(sorted(unknown))}; there are {', '.join(REASONS)}")
    return {row["code"]: row for row in rows}


def passing(verdicts: dict[str, dict[str, Row]]) -> dict[str, dict[str, Row]]:
    """Those that `paper` lets pass."""
    return {name: both for name, both in verdicts.items() if both["paper"]["functional_status"] == "correct"}


def is_found(both: dict[str, Row]) -> bool:
    """Whether `robust` does not let a candidate pass."""
    return both["robust"]["status"] != "correct"


def report(work: Path) -> None:
    """Print what was found, what was blamed, what was missed, and what it cost."""
    right, made = judged(work / "right.verdicts.jsonl"), judged(work / "mutants.verdicts.jsonl")
    _report_right(right)
    blamed = {name for name, both in passing(right).items() if is_found(both)}
    left = {name: both for name, both in passing(made).items() if name.rpartition("~")[0] not in blamed}
    codes = {row["problem_id"]: digest(row["code"]) for row in map(json.loads, (work / "mutants.jsonl").open())}
    aside = {name: row for name in left if (row := set_aside().get(codes[name])) is not None}
    for name in sorted(aside):
        if is_found(left[name]):
            print(f"  WRONG: {name}, set aside as {aside[name]['reason']}: {left[name]['robust']['message'][:200]}")
    print(f"mutants: {len(made)} judged, {len(left)} pass paper")
    print(f"  found, of all that pass paper: {_share(left.values())}")
    wrong = {name: both for name, both in left.items() if name not in aside}
    print(f"  set aside: {len(aside)}: {dict(Counter(row['reason'] for row in aside.values()).most_common())}")
    print(f"  found, without those set aside: {_share(wrong.values())}")
    for kind, rules in KINDS.items():
        of_kind = {name: both for name, both in wrong.items() if name.rpartition("~")[2] in rules}
        if of_kind:
            print(f"  {kind}: {_share(of_kind.values())}")
        for rule in rules:
            of_rule = [both for name, both in of_kind.items() if name.endswith(f"~{rule}")]
            if of_rule:
                print(f"    {rule}: {sum(map(is_found, of_rule))} of {len(of_rule)}")
    found = [both["robust"] for both in left.values() if is_found(both)]
    print(f"  first broken by: {dict(Counter(one['message'].split(':')[0] for one in found).most_common())}")
    print(f"  missed: {', '.join(name for name in sorted(wrong) if not is_found(wrong[name]))}")
    for label, both in (("right", passing(right)), ("mutants", left)):
        seconds = {p: sum(one[p]["seconds"] for one in both.values()) / max(1, len(both)) for p in ("paper", "robust")}
        print(f"{label}: {seconds['paper']:.2f} s a candidate under paper, {seconds['robust']:.2f} s under robust")


def _report_right(right: dict[str, dict[str, Row]]) -> None:
    good = passing(right)
    alarms = [name for name, both in good.items() if is_found(both)]
    print(f"right: {len(right)} judged, {len(good)} pass paper, {len(alarms)} blamed by robust")
    for name in alarms:
        print(f"  {name}: {good[name]['robust']['message'][:300]}")
    warned = Counter(
        one["name"] for both in good.values() for one in both["robust"]["conditions"] or []
        if one["outcome"] == "broken" and not one["decides"]
    )  # fmt: skip
    print(f"  warnings: {dict(warned)}")


def _share(verdicts: Iterable[dict[str, Row]]) -> str:
    """How many are found, with the 95 % interval."""
    hits = [is_found(both) for both in verdicts]
    low, high = wilson(sum(hits), len(hits)) if hits else (0.0, 1.0)
    return (
        f"{sum(hits)} of {len(hits)} ({100 * sum(hits) / max(1, len(hits)):.1f} % [{100 * low:.1f}, {100 * high:.1f}])"
    )


def missed(work: Path) -> None:
    """Print every mutant that was neither found nor set aside, as a difference to its original."""
    originals = {row["problem_id"]: row["code"] for row in map(json.loads, (work / "right.jsonl").open())}
    codes = {row["problem_id"]: row["code"] for row in map(json.loads, (work / "mutants.jsonl").open())}
    for name, both in sorted(passing(judged(work / "mutants.verdicts.jsonl")).items()):
        if is_found(both) or digest(codes[name]) in set_aside():
            continue
        lines = (text.splitlines() for text in (originals[name.rpartition("~")[0]], codes[name]))
        changes = [line for line in difflib.unified_diff(*lines, n=1, lineterm="") if line[:3] not in ("---", "+++")]
        print("\n".join([f"{name} {digest(codes[name])}", *changes, ""]))


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["make", "judge", "report", "missed"])
    parser.add_argument("--pairs", nargs="*", default=[], help="files of right pairs")
    parser.add_argument("--work", type=Path, required=True, help="folder of candidates and verdicts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=4, help="mutants of each kernel")
    parser.add_argument("--synthetic", type=int, default=60, help="synthetic pairs")
    parser.add_argument("--shapes", choices=["small", "large"], default="small", help="sizes of synthetic programs")
    parser.add_argument("--most-elements", type=int, default=1 << 20, help="of a problem's inputs")
    parser.add_argument("--of", choices=["right", "mutants"], default="mutants", help="which file is judged")
    parser.add_argument("--count", type=int, default=100, help="candidates that are judged by this call")
    parser.add_argument("--jobs", type=int, default=1, help="candidates that are judged side by side")
    parser.add_argument("--limit-s", type=float, default=540.0, help="seconds of this call")
    args = parser.parse_args()
    if args.step == "make":
        synthetic = SyntheticConfig(scale="nano", shapes=args.shapes)
        rows = right_kernels(synthetic, args.synthetic, args.seed, args.most_elements, args.pairs)
        make(args.work, args.seed, args.each, rows)
    elif args.step == "judge":
        judge(args.work, args.of, args.count, args.limit_s, args.jobs)
    elif args.step == "report":
        report(args.work)
    else:
        missed(args.work)


if __name__ == "__main__":
    sys.exit(main())
