"""KernelBench's problems (arXiv 2502.10517): from a checkout, the Hugging Face hub, or any folder of the same form.

Problem code is parsed, never executed. Ids are logical, `level1/19_ReLU`: level, number and name without the file's
trailing underscores, independent of the layout and order of the files. Text is read as KernelBench reads it (UTF-8, any
line ending becomes \\n), so a prompt made from a problem has one hash wherever the problem came from.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dice.config import add_options, config_from, stage_config, to_spec
from dice.data.difficulty import difficulties
from dice.data.pair import OnBad, from_published, read_pairs
from dice.errors import DiceError
from dice.hub import HubUnreachable, full_commit
from dice.jsonl import BadRow, RowError, write_jsonl, write_text
from dice.kernels.api import Problem, level_folders, load_problem_folder, named_problem, unique_problems
from dice.manifest import Stopwatch, write_manifest

HUB = "huggingface"
HUB_DATASET = "ScalingIntelligence/KernelBench"
PAPER_VERSION = "kernelbench-v0.1"
"""The version that the authors' evaluation folder holds."""


@dataclass(frozen=True)
class KernelBenchVersion:
    """A published state of the problems."""

    git_commit: str
    """Commit of github.com/ScalingIntelligence/KernelBench."""
    hub_revision: str | None
    """The hub's commit with the same content, according to its history; None where it was never uploaded."""
    content: dict[int, str] = field(default_factory=dict)
    """Level -> `content_digest`, computed from the git commit."""


VERSIONS = {
    # the problems as first published: small shapes, inputs from randn
    "kernelbench-v0": KernelBenchVersion(
        git_commit="6500bbc8cf102520d7a8f09be34ee6d5db1c29b0",
        hub_revision="16b08a8",
        content={
            1: "cb777d29a31189ac6ac2412be6c22283b33e1ea6e9252b0d8463cdb54ad3fdeb",
            2: "57eeedba37ecd0be8260c16bc34a352e613c4776c760e9e651fe2aa725dae6dd",
            3: "4666ce22356dda64259ae8ad28ed96e95ba16cd429f3930c5e4424eb3750fc7b",
            4: "b2d4ec5978a207030a765a2a3c424938b3d6f6232a58218a5c0e07f389e68d1e",
        },
    ),
    # larger tensors, inputs from rand, degenerate problems replaced (1-50, 1-97 and several of level 2)
    PAPER_VERSION: KernelBenchVersion(
        git_commit="88df56b931a0ecafc3ac3b321275addaa078407c",
        hub_revision="708b9f6",
        content={
            1: "ff7ce275aabcd313342f77990a4e2296e54d1568ab9ceb6f66deab0dce732db0",
            2: "6464a96de3488cdde581053d86f97c5f4e5b4f77a0cfcc95bfb5c0d0b798d084",
            3: "217393fa2df962b2dad1468f199236f4c6c8756e1bba994fafa6d34b624f1e54",
            4: "b2d4ec5978a207030a765a2a3c424938b3d6f6232a58218a5c0e07f389e68d1e",
        },
    ),
    # v0.1 with 1-12 (fairer reference), 1-92 (exclusive cumsum) and 1-97 (no device or dtype) corrected
    "kernelbench-v0.2-dev": KernelBenchVersion(
        git_commit="423217d9fda91e0c2d67e4a43bf62f96f6d104f1",
        hub_revision=None,
        content={
            1: "1fc2ed0065cc144a8ff17e9fe8297622d34c0b4797ef7df5f6dd29e00c78cb10",
            2: "6464a96de3488cdde581053d86f97c5f4e5b4f77a0cfcc95bfb5c0d0b798d084",
            3: "217393fa2df962b2dad1468f199236f4c6c8756e1bba994fafa6d34b624f1e54",
            4: "b2d4ec5978a207030a765a2a3c424938b3d6f6232a58218a5c0e07f389e68d1e",
        },
    ),
}


def content_digest(problems: Iterable[Problem]) -> str:
    """sha256 over number and code of the problems of one level, in the order of their numbers."""
    rows = sorted((problem.number, hashlib.sha256(problem.code.encode()).hexdigest()) for problem in problems)
    return hashlib.sha256("".join(f"{number} {code}\n" for number, code in rows).encode()).hexdigest()


def published_versions(problems: Sequence[Problem]) -> dict[int, list[str]]:
    """Level -> the named versions that have exactly the given problems of that level."""
    levels = sorted({problem.level for problem in problems})
    digests = {level: content_digest(p for p in problems if p.level == level) for level in levels}
    return {level: [n for n, v in VERSIONS.items() if v.content.get(level) == digests[level]] for level in levels}


def load_kernelbench(
    source: str | Path = HUB,
    version: str = PAPER_VERSION,
    levels: Sequence[int] = (1, 2, 3),
    *,
    revision: str | None = None,
    skipped: list[BadRow] | None = None,
) -> list[Problem]:
    """Problems by level and number.

    `source`: a checkout of KernelBench (any of its layouts), a folder with the hub's parquet files
    (`data/level_1-*.parquet`), or "huggingface". `revision` overrides the pinned hub commit. `skipped`: None refuses
    a source with a bad problem; a list takes the bad ones, which are then left out. Raises DiceError.
    """
    if version not in VERSIONS:
        raise DiceError(f"unknown KernelBench version '{version}'; the versions are {', '.join(VERSIONS)}.")
    if str(source) == HUB:
        commit = resolve_hub_revision(version, revision)
        rows = _hub_rows(HUB_DATASET, version, levels, revision=commit)
    elif not Path(source).is_dir():
        raise DiceError(f"{source}: no such folder; {_what_to_place(version)}")
    elif level_folders(Path(source)):
        return load_problem_folder(source, version=version, levels=levels, skipped=skipped)
    elif any(Path(source).glob("**/*.parquet")):
        rows = _hub_rows(str(source), version, levels, revision=None)
    else:
        raise DiceError(f"{source}: neither level folders nor parquet files; {_what_to_place(version)}")
    return unique_problems(_problems_of_rows(rows, version), skipped)


def resolve_hub_revision(version: str, revision: str | None = None) -> str:
    """The full commit of the hub dataset: the hub needs all 40 characters, and its pages show the first ones.

    Raises DiceError when the hub cannot be reached, or has no such commit.
    """
    wanted = revision or VERSIONS[version].hub_revision
    if wanted is None:
        raise DiceError(f"{version} was never uploaded to the hub; {_what_to_place(version)}")
    try:
        return full_commit(HUB_DATASET, wanted, repo_type="dataset")
    except HubUnreachable as error:
        raise _unreachable(version, error.__cause__ or error) from error


def _unreachable(version: str, error: BaseException) -> DiceError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return DiceError(f"{HUB_DATASET}: the Hugging Face hub cannot be read ({reason}); {_what_to_place(version)}")


def _what_to_place(version: str) -> str:
    commit = VERSIONS[version].git_commit[:9]
    return (
        f"clone github.com/ScalingIntelligence/KernelBench at {commit} and give its folder as the source, "
        f"or a folder with the dataset's data/level_1-*.parquet, ... from huggingface.co/datasets/{HUB_DATASET}."
    )


def _hub_rows(
    path: str, version: str, levels: Sequence[int], *, revision: str | None
) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """(where, row number, row) of the splits level_1, level_2, ...; `path` is a hub name or a folder."""
    try:
        import datasets
    except ImportError as error:
        raise DiceError(f"reading {path} needs the 'datasets' package: pip install 'dice-repro[data]'.") from error
    for level in levels:
        split = f"level_{level}"
        try:
            rows = datasets.load_dataset(path, split=split, revision=revision)
        except Exception as error:  # the hub and the reader of parquet have many classes of errors
            if path == HUB_DATASET:
                raise _unreachable(version, error) from error
            raise DiceError(f"{path}: split {split} cannot be read ({' '.join(str(error).split())}).") from error
        for number, row in enumerate(rows, 1):
            yield f"{path}[{split}]", number, dict(row)


def _problems_of_rows(
    rows: Iterable[tuple[str, int, dict[str, Any]]], version: str
) -> Iterator[tuple[Path, Problem | BadRow]]:
    for where, line, row in rows:
        try:
            absent = [name for name in ("code", "level", "name", "problem_id") if row.get(name) is None]
            if absent:
                raise RowError(f"missing field '{absent[0]}'")
            stem = str(row["name"]).removesuffix(".py")
            number = re.match(r"\d+", stem)
            if number is None or int(number[0]) != row["problem_id"]:
                raise RowError(f"name '{row['name']}' does not start with the problem_id {row['problem_id']}")
            if not where.endswith(f"[level_{row['level']}]"):
                raise RowError(f"level {row['level']} is not the split's")
            code = "\n".join(re.split(r"\r\n|\r", row["code"]))
            problem = named_problem(stem, code, int(row["level"]), version)
        except RowError as error:
            yield Path(where), BadRow(path=where, line=line, id=str(row.get("name")), reason=str(error))
        else:
            yield Path(where), problem


def problems_of_pairs(
    *paths: str | Path, version: str, levels: Sequence[int]
) -> Iterator[tuple[Path, Problem | BadRow]]:
    """The programs of files of pairs as problems of `levels`, numbered from 1 in the order of the good rows of all.

    A program without a level is labelled; bad rows are given too.

    Raises DiceError for a file that cannot be read.
    """
    before = 0
    for path in paths:
        pairs, bad = read_pairs(path, on_bad="skip", require_cuda=False, convert=from_published("unknown"))
        yield from ((Path(path), row) for row in bad)  # the caller refuses or skips them with the bad problems
        for row, (pair, label) in enumerate(zip(pairs, difficulties(pairs), strict=True), 1):
            level = pair.level or label.level
            if level is None or level not in levels:
                continue
            name = re.sub(r"\W+", "_", pair.id)
            try:
                yield Path(path), named_problem(f"{before + row}_{name}", pair.pytorch_code, level, version)
            except RowError as error:
                yield Path(path), BadRow(path=str(path), line=row, id=pair.id, reason=str(error))
        before += len(pairs)


@stage_config
class ProblemsConfig:
    """Settings of `dice problems`."""

    out: str
    """problems.jsonl to write."""
    source: str = HUB
    """`huggingface`, a checkout of KernelBench, a folder with the hub's parquet files, any folder of problems, or a file of
    pairs or of the authors' programs."""
    further: tuple[str, ...] = ()
    """Files whose programs are problems too, where `source` is such a file."""
    version: str = PAPER_VERSION
    """`kernelbench-v0`, `-v0.1` or `-v0.2-dev`; for what is not KernelBench's, the name to give it."""
    levels: tuple[int, ...] = (1, 2, 3)
    """Levels to take."""
    revision: str | None = None
    """Commit, branch or tag of the hub dataset; None: the version's pin."""
    on_bad: OnBad = "refuse"
    """`refuse` the source when a problem is bad, or `skip` and report it."""


def write_problems(config: ProblemsConfig) -> list[Problem]:
    """Load, write problems.jsonl, a report of bad problems and the manifest; returns the problems."""
    watch = Stopwatch()
    skipped: list[BadRow] | None = None if config.on_bad == "refuse" else []
    if config.further and (config.version in VERSIONS or not Path(config.source).is_file()):
        what = config.version if config.version in VERSIONS else config.source
        raise DiceError(f"further: {config.further[0]} is read beside a file of pairs, and {what} is none.")
    if config.version in VERSIONS:
        problems = load_kernelbench(
            config.source, config.version, config.levels, revision=config.revision, skipped=skipped
        )
    elif Path(config.source).is_file():
        found = problems_of_pairs(config.source, *config.further, version=config.version, levels=config.levels)
        problems = unique_problems(found, skipped)
    else:
        problems = load_problem_folder(config.source, version=config.version, levels=config.levels, skipped=skipped)
    if not problems:
        raise DiceError(f"{config.source}: no problem of level {' or '.join(map(str, config.levels))} can be used.")
    published = published_versions(problems)
    write_jsonl(config.out, problems)
    if skipped:
        write_text(config.out + ".bad_rows.txt", "".join(f"{row}\n" for row in skipped))
    extra = {
        "problems": dict(Counter(f"level{problem.level}" for problem in problems)),
        "content": {f"level{level}": names or ["none of the named versions"] for level, names in published.items()},
        "bad_rows": [row.model_dump() for row in skipped or []],
    }
    # `content` names the state of a folder
    inputs = [config.source, *config.further] if Path(config.source).is_file() else []
    write_manifest(config.out, stage="problems", spec=to_spec(config), watch=watch, inputs=inputs, extra=extra)
    for level, names in published.items():
        if config.version in VERSIONS and config.version not in names:
            what = f"is {' and '.join(names)}" if names else "is no published state of KernelBench"
            print(f"dice problems: level {level} of {config.source} {what}, not {config.version}.", file=sys.stderr)
    return problems


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice problems`."""
    add_options(parser, ProblemsConfig, "source", "further", "version", "levels", "revision", "on_bad", "out")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice problems`."""
    config = config_from(args, ProblemsConfig)
    problems = write_problems(config)
    counts = Counter(problem.level for problem in problems)
    print(
        f"{len(problems)} problems written to {config.out} ({', '.join(f'level {k}: {n}' for k, n in counts.items())})"
    )
    return 0
