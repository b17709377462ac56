"""Does the protocol `robust` find what `paper` lets pass? Mutants of right kernels, made by rules over their CUDA text.

    python benchmarks/robust_mutants.py make --work DIR [--seed 1] [--each 4] [--synthetic 60] [--pairs FILE ...]
    python benchmarks/robust_mutants.py judge --work DIR [--most 100] [--jobs 1] [--limit-s 600]
    python benchmarks/robust_mutants.py report --work DIR

make    DIR/right.jsonl and DIR/mutants.jsonl: the mini benchmark's solutions, synthetic pairs and the given files of pairs,
        and of each up to `--each` mutants of different rules. A rule changes one place: a bound, a tail, a stride, an
        accumulator, a barrier, a neutral element, a batch or a length that is taken for granted.
judge   both files on the CPU back end under `paper` and `robust`, at most `--most` candidates of each; the same command
        goes on where it stopped.
report  of the mutants that pass `paper`, how many `robust` finds, by rule and condition; of the right kernels, how many it
        blames; and what both protocols cost.

A mutant need not be wrong: `<` instead of `<=` in a loop that never gets there changes nothing. Those that `robust` does not
find are listed, for a reader to tell.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from verify_command import Row, read_pairs, read_verdicts, verify, write_candidates

from dice.data.synthetic import SyntheticConfig, pairs
from dice.kernels.api import load_mini

SOLUTIONS = Path(__file__).resolve().parents[1] / "tests" / "kernels" / "problems" / "mini" / "solutions"
_FLAGS = (
    "--backend",
    "cpu",
    "--set",
    'judging.protocols=["paper","robust"]',
    "--seed",
    "1",
    "--trials",
    "3",
)
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


_TERM = r"[A-Za-z_]\w*(?:\.\w+)?"
_INDEX = r"(?:idx|index|i|j|k|row|col|column|c|t|tid|x|y|e|element|gid|position|pos)\w*"
RULES: dict[str, Rule] = {
    # bounds
    "bound_one_more": _one(rf"(if\s*\(\s*{_INDEX}\s*)<(\s*{_TERM}\s*\))", r"\1<=\2"),
    "bound_one_less": _one(rf"(if\s*\(\s*{_INDEX}\s*)<(\s*)({_TERM})(\s*\))", r"\1<\2\3 - 1\4"),
    "return_one_late": _one(rf"(if\s*\(\s*{_INDEX}\s*)>=(\s*{_TERM}\s*\)\s*\{{?\s*return)", r"\1>\2"),
    "no_bound": _one(rf"if\s*\(\s*{_INDEX}\s*<\s*{_TERM}\s*\)", "if (true)"),
    "loop_one_more": _one(rf"(for\s*\([^;]*;\s*\w+\s*)<(\s*{_TERM}\s*;)", r"\1<=\2"),
    "loop_one_less": _one(rf"(for\s*\([^;]*;\s*\w+\s*)<(\s*)({_TERM})(\s*;)", r"\1<\2\3 - 1\4"),
    # tails
    "grid_rounded_down": _one(rf"\(\s*({_TERM})\s*\+\s*({_TERM}|\d+)\s*-\s*1\s*\)\s*/\s*\2", r"(\1 / \2)"),
    "grid_constant_down": _one(rf"\(\s*({_TERM})\s*\+\s*(?:255|127|511|1023|63|31)\s*\)\s*/\s*(\d+)", r"(\1 / \2)"),
    "tail_unguarded": _one(rf"({_TERM})\s*<\s*{_TERM}\s*\?\s*([^:;?]+?)\s*:\s*0(?:\.0?f?)?(?=[;,)])", r"\2"),
    # strides
    "stride_of_loop": _one(r"\+=\s*(?:blockDim|gridDim)\.x\s*\*\s*(?:blockDim|gridDim)\.x", "+= blockDim.x"),
    "stride_fixed": _one(r"\+=\s*blockDim\.x(?=\s*\))", "+= 256"),
    "step_fixed": _one(r"blockDim\.x\s*/\s*2", "128"),
    # accumulators
    "coarse_accumulator": _one(
        r"(\b\w*(?:sum|acc|total|value|result)\w*\s*\+=\s*)([^;]+);", r"\1(float)(int)((\2) * 1024.0f) / 1024.0f;"
    ),
    "no_reset": _one(r"(float\s+\w*(?:sum|acc|total)\w*\s*=\s*)0(?:\.0?f?)?;", r"\g<1>1e-3f;"),
    # barriers
    "no_barrier": _one(r"__syncthreads\(\);", ""),
    "no_warp_barrier": _one(r"__syncwarp\(\);", ""),
    "no_atomic": _one(r"atomicAdd\(\s*&?([\w\[\]>.\-+* ]+?)\s*,\s*([^;]+)\);", r"\1 += \2;"),
    # neutral elements
    "maximum_from_zero": _one(
        r"-\s*(?:INFINITY|FLT_MAX|1e\d+f?|std::numeric_limits<float>::(?:infinity|max)\(\))", "0.0f"
    ),
    "maximum_from_small": _one(r"-\s*(?:INFINITY|FLT_MAX)", "-1e2f"),
    "minimum_from_small": _one(r"(=\s*)(?:INFINITY|FLT_MAX)(?=;)", r"\g<1>1e2f"),
    "product_from_zero": _one(r"(float\s+\w*(?:prod)\w*\s*=\s*)1(?:\.0?f?)?;", r"\g<1>0.0f;"),
    "padding_of_one": _one(r"(\?\s*[^:;?]+?\s*:\s*)0\.0f?", r"\g<1>1e-4f"),
    # values
    "no_maximum_subtracted": _one(r"(exp[f]?\(\s*)([^()]+?)\s*-\s*\w*max\w*(\s*\))", r"\1\2\3"),
    "no_epsilon": _one(r"(rsqrtf?\([^()]*?)\+\s*(?:eps|epsilon|1e-\d+f?)\b", r"\1"),
    "positive_only": _one(r"fabsf?\(([^()]+)\)", r"(\1)"),
    # assumed batch or length
    "size_assumed": lambda text, draw: _assumed(text, draw, r"(int(?:64_t)?\s+\w+\s*=\s*)\w+\.size\((\d)\);"),
    "count_assumed": lambda text, draw: _assumed(text, draw, r"(int(?:64_t)?\s+\w+\s*=\s*)\w+\.numel\(\);"),
}


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


def right_kernels(synthetic: int, seed: int, files: list[str]) -> list[Row]:
    """Solutions of the mini benchmark, synthetic pairs, pairs of files."""
    rows = [
        {"id": problem.id, "problem_code": problem.code, "code": (SOLUTIONS / f"{problem.id}.py").read_text()}
        for problem in load_mini("cpu")
    ]
    for number, pair in enumerate(pairs(SyntheticConfig(scale="nano"), seed, synthetic)):
        rows.append({"id": f"synthetic/{number}", "problem_code": pair.pytorch_code, "code": pair.cuda_code})
    for path in files:
        rows += read_pairs(path)
    return rows


def make(work: Path, seed: int, each: int, synthetic: int, files: list[str]) -> None:
    """Write right kernels and their mutants, both in an order that the seed fixes."""
    work.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)
    rows = right_kernels(synthetic, seed, files)
    broken = [mutant for row in rows for mutant in mutants(row, each, draw)]
    draw.shuffle(rows)
    draw.shuffle(broken)
    write_candidates(work / "right.jsonl", rows)
    write_candidates(work / "mutants.jsonl", broken)
    counts = Counter(row["id"].rpartition("~")[2] for row in broken)
    print(f"{len(rows)} right kernels, {len(broken)} mutants: {dict(counts.most_common())}")


def judge(work: Path, most: int, limit_s: float, jobs: int) -> None:
    """Verdicts of the first `most` of each file."""
    for name in ("right", "mutants"):
        lines = (work / f"{name}.jsonl").read_text().splitlines()[:most]
        chosen = work / f"{name}_{most}.jsonl"
        chosen.write_text("".join(line + "\n" for line in lines))
        wall_s, found = verify(
            chosen, work / f"{name}_{most}.verdicts.jsonl", *_FLAGS, "--jobs", str(jobs), limit_s=limit_s
        )
        print(f"{name}: {len(found)} verdicts in {wall_s:.0f} s")


def by_candidate(path: Path) -> dict[str, dict[str, Row]]:
    """Candidate -> protocol -> verdict, of those that have both."""
    found: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in read_verdicts(path):
        found[row["problem_id"]][row["protocol"]] = row
    return {name: both for name, both in found.items() if len(both) == 2}


def report(work: Path, most: int) -> None:
    """Print what was found, what was blamed, what was missed, and what it cost."""
    right = by_candidate(work / f"right_{most}.verdicts.jsonl")
    passing = {name: both for name, both in right.items() if both["paper"]["functional_status"] == "correct"}
    alarms = [name for name, both in passing.items() if both["robust"]["status"] != "correct"]
    print(f"right: {len(right)} judged, {len(passing)} pass paper, {len(alarms)} blamed by robust")
    for name in alarms:
        print(f"  {name}: {passing[name]['robust']['message'][:300]}")
    warned = Counter(
        one["name"] for both in passing.values() for one in both["robust"]["conditions"] or []
        if one["outcome"] == "broken" and not one["decides"]
    )  # fmt: skip
    print(f"  warnings: {dict(warned)}")
    made = by_candidate(work / f"mutants_{most}.verdicts.jsonl")
    left = {name: both for name, both in made.items() if both["paper"]["functional_status"] == "correct"}
    found = {name for name, both in left.items() if both["robust"]["status"] != "correct"}
    share = 100 * len(found) / max(1, len(left))
    print(f"mutants: {len(made)} judged, {len(left)} pass paper, {len(found)} of them found by robust ({share:.0f} %)")
    rules = Counter(name.rpartition("~")[2] for name in left)
    for rule, count in rules.most_common():
        print(f"  {rule}: {sum(name.endswith(f'~{rule}') for name in found)} of {count}")
    first = Counter(left[name]["robust"]["message"].split(":")[0] for name in found)
    print(f"  first condition that breaks them: {dict(first.most_common())}")
    for name in sorted(set(left) - found):
        print(f"  missed: {name}")
    for label, both in (("right", passing), ("mutants", left)):
        seconds = {p: sum(one[p]["seconds"] for one in both.values()) / max(1, len(both)) for p in ("paper", "robust")}
        print(f"{label}: {seconds['paper']:.2f} s a candidate under paper, {seconds['robust']:.2f} s under robust")


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["make", "judge", "report"])
    parser.add_argument("--pairs", nargs="*", default=[], help="files of right pairs")
    parser.add_argument("--work", type=Path, required=True, help="folder of candidates and verdicts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=4, help="mutants of each kernel")
    parser.add_argument("--synthetic", type=int, default=60, help="synthetic pairs")
    parser.add_argument("--most", type=int, default=100, help="candidates of each file that are judged")
    parser.add_argument("--jobs", type=int, default=1, help="candidates that are judged side by side")
    parser.add_argument("--limit-s", type=float, default=600.0, help="seconds for each file")
    args = parser.parse_args()
    if args.step == "make":
        make(args.work, args.seed, args.each, args.synthetic, args.pairs)
    elif args.step == "judge":
        judge(args.work, args.most, args.limit_s, args.jobs)
    else:
        report(args.work, args.most)


if __name__ == "__main__":
    sys.exit(main())
