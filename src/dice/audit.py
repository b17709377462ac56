"""`dice audit`: the chain of evidence behind one cell of a table, with hashes.

    dice audit results/table1.csv --cell DICE-8B:l1_exec

It walks the manifests that every stage writes: table, score, verdicts, generations, checkpoint, data. Each link has a state:

verified    the file's sha256 is the one that the manifest above it (or its own) wrote down
recorded    the file was temporary, and both manifests agree about its hash
unverified  nothing wrote a hash down (supplied files and folders), or a stage made it and its manifest is gone
elsewhere   it is not here, and the stage that read it ran outside of these results: training data of a given checkpoint
changed     it has another hash, or its manifest contradicts itself or the one above
missing     it is gone

A folder is compared with its `SHA256SUMS`, or with the manifest of its download, file by file. Commit, times and machine are
shown as a manifest has them; nothing checks these. The cell itself is counted again from the verdicts, and the answers that
count are named. The exit code is 1 when a link has changed or is missing, or the recount differs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dice.config import spec_hash
from dice.errors import DiceError
from dice.manifest import MODEL_MANIFEST, Manifest, read_manifest, sha256_file
from dice.report.tables import METRICS, percent, read_table
from dice.study.publish import NOT_CONTENT, SUMS


@dataclass(frozen=True)
class Link:
    """One file or folder of the chain."""

    depth: int
    path: str
    state: str
    sha256: str
    stage: str
    detail: str


HISTORY = "history.jsonl"
_WEIGHTS = ".safetensors"


def folder_files(folder: Path) -> list[Path]:
    """The weights of a checkpoint folder."""
    return sorted(folder.glob(f"*{_WEIGHTS}"))


def folder_hashes(folder: Path, manifest: Manifest | None) -> dict[str, str]:
    """sha256 of each file of a folder as it was written down: in `SHA256SUMS`, or when the folder was fetched."""
    sums = folder / SUMS
    if not sums.is_file():
        return dict(manifest.extra.get("files", {})) if manifest else {}
    rows = (line.partition("  ") for line in sums.read_text(encoding="utf-8", errors="replace").splitlines())
    return {name: digest for digest, _, name in rows}


def folder_state(folder: Path, hashes: dict[str, str]) -> str:
    """`verified` when the folder holds what was written down, and no more; `unverified` where nothing was."""
    if not hashes:
        return "unverified"
    # a download's manifest names the files at the top, and its tool keeps notes of its own below
    entries = folder.rglob("*") if (folder / SUMS).is_file() else folder.iterdir()
    files = (file for file in entries if file.is_file() and file.name not in (*NOT_CONTENT, MODEL_MANIFEST))
    there = {str(file.relative_to(folder)) for file in files}
    same = there <= hashes.keys() and all(
        (folder / name).is_file() and sha256_file(folder / name) == digest for name, digest in hashes.items()
    )
    return "verified" if same else "changed"


def _inputs(place: Path, manifest: Manifest) -> Iterator[tuple[str, str | None]]:
    """(path, recorded sha256 or None) of everything that a stage read."""
    for path, digest in manifest.inputs.items():
        # a published model has the history of its training, whose folder may have been deleted since
        published = place / Path(path).name
        yield (str(published) if not Path(path).exists() and published.is_file() else path), digest
    named = [manifest.spec.get(name) for name in ("model", "tokenizer", "candidates", "problems")]
    named.append(_served(manifest))
    for value in named:
        if isinstance(value, str) and value not in manifest.inputs and ("/" in value or Path(value).exists()):
            yield value, None


def _served(manifest: Manifest) -> str | None:
    """Folder of the checkpoint behind a local server; None where no such server answered."""
    local = (manifest.spec.get("server") or {}).get("local") or {}
    return local.get("checkpoint")


def _contradiction(manifest: Manifest, recorded: str | None) -> str:
    """What a manifest says against itself, or against the one above it; empty where all agrees."""
    if spec_hash(manifest.spec) != manifest.spec_hash:
        return "its manifest was edited: the settings in it are not those whose hash it keeps"
    if recorded and manifest.output_sha256 not in (None, recorded):
        return "its manifest is about another file than the one that was read"
    return ""


def _is_below(path: str | Path, folder: Path) -> bool:
    return Path(path).resolve().is_relative_to(folder.resolve())


def chain(
    path: str,
    results: Path,
    recorded: str | None = None,
    depth: int = 0,
    seen: set[str] | None = None,
    ran_here: bool = True,
) -> Iterator[Link]:
    """The links from `path` down, each file once.

    `results`: the folder in which every file was made by a stage; `ran_here`: whether the stage that read `path` wrote there.
    """
    seen = set() if seen is None else seen
    if path in seen:
        return
    seen.add(path)
    place = Path(path)
    try:
        manifest = read_manifest(place)
        detail = _contradiction(manifest, recorded) if manifest else ""
    except DiceError as error:
        manifest, detail = None, str(error)
    wrong = bool(detail)
    stage = manifest.stage if manifest else "no manifest"
    if manifest and not wrong:
        gpus = ", ".join(gpu.name for gpu in manifest.gpus) or "no GPU"
        commit = (manifest.git_commit or "no commit")[:12] + (" with local changes" if manifest.git_dirty else "")
        detail = f"{manifest.started}, {manifest.wall_s:.0f} s, {gpus}, image {manifest.image}, {commit}"
    if place.is_file():
        digest = sha256_file(place)
        known = recorded or (manifest.output_sha256 if manifest else None)
        state = "unverified" if known is None else ("verified" if known == digest else "changed")
        by_a_stage = _is_below(place, results)
        if not manifest and state == "verified" and by_a_stage and place.name != HISTORY and place.suffix != _WEIGHTS:
            state, detail = "unverified", "its manifest is gone: what it was made from is not known"
    elif place.is_dir():
        files = folder_files(place)
        digest = sha256_file(files[0]) if len(files) == 1 else ""
        state = folder_state(place, folder_hashes(place, manifest))
    else:
        digest, state = "", "missing" if ran_here else "elsewhere"
        if manifest and recorded and recorded == manifest.output_sha256:
            digest, state = recorded, "recorded"
    yield Link(depth, path, "changed" if wrong else state, digest or (recorded or ""), stage, detail)
    if manifest:
        here = wrong or _is_below(manifest.spec.get("out") or place, results)
        for child, child_hash in _inputs(place, manifest):
            yield from chain(child, results, child_hash, depth + 1, seen, ran_here=here)
        weights = manifest.extra.get("weights") if manifest.stage in ("generate", "ask") else None
        for name, digest in (weights or {}).items():
            folder = _served(manifest) or manifest.spec["model"]
            yield from chain(str(Path(folder) / name), results, digest, depth + 1, seen)


def recount(score_path: str, level: int, metric: str, robust: bool) -> tuple[str, list[str]]:
    """The cell counted again from the verdicts that the score names, and a line for each answer that counts.

    Raises DiceError where they cannot be read."""
    from dice.evaluation.score import count, is_hit
    from dice.jsonl import read_jsonl
    from dice.kernels.api import Problem, Verdict

    manifest = read_manifest(Path(score_path))
    if manifest is None:
        raise DiceError(f"{score_path}: has no manifest, so its verdicts are not known.")
    spec = manifest.spec
    levels = {p.id: p.level for p in read_jsonl(spec["problems"], Problem) if p.level == level}
    seeds = [
        [v for v in read_jsonl(path, Verdict) if v.protocol == spec["protocol"] and v.problem_id in levels]
        for path in spec["verdicts"]
    ]
    if not any(seeds):
        raise DiceError(f"{', '.join(spec['verdicts'])}: no verdicts of level {level}.")
    rate = next(row for row in count(seeds, levels) if row.robust == robust).metrics[metric]  # type: ignore[index]
    if rate is None:
        return percent(None), []
    lines = [
        f"  {v.problem_id}, seed {k}, sample {v.sample}, code {v.code_sha256[:16]}"
        for k, seed in enumerate(seeds)
        for v in seed
        if is_hit(v, metric, robust)  # type: ignore[arg-type]
    ]
    return percent(rate.value), lines


def _logs(score_path: Path) -> list[str]:
    """Logs of the rules that worked for the score's unit."""
    unit = score_path.stem
    logs = score_path.parent.parent / "logs"
    return sorted(str(log) for pattern in (f"*-{unit}.log", f"*-{unit}-[0-9]*.log") for log in logs.glob(pattern))


def audit(table: str, cell: str) -> tuple[list[str], bool]:
    """(lines to print, whether everything that can be verified holds). Raises DiceError for a cell that is not there."""
    name, colon, column = cell.partition(":")
    rows = {row["row"]: row for row in read_table(table)}
    if not colon or name not in rows:
        raise DiceError(f"--cell {cell}: give ROW:COLUMN; rows of {table} are {', '.join(rows)}.")
    row = rows[name]
    if column not in row:
        raise DiceError(f"--cell {cell}: {table} has no column '{column}'; it has {', '.join(row)}.")
    lines = [f"{table}, {name}, {column}: {row[column] or '(empty)'}  [{row['status']}, scale {row['scale']}]"]
    if row["status"] != "measured":
        reported = row.get(f"{column}_reported", "")
        lines.append(f"only the paper's number ({reported}) is there: {row['reason']}. There is no chain to audit.")
        return lines, True
    score_path = row["manifest"].removesuffix(".manifest.json")
    results = Path(table).parent
    if not Path(score_path).parent.is_dir():
        raise DiceError(f"{table}: names {score_path}; run this where Snakemake ran, paths begin there.")
    good = True
    level_name, _, metric = column.partition("_")
    if metric in METRICS:
        table_manifest = read_manifest(Path(table))
        evidence = table_manifest.spec["rows"] if table_manifest else []
        robust = next((r["robust"] for r in evidence if r["row"] == name), True)
        try:
            again, answers = recount(score_path, int(level_name[1:]), metric, robust)
            good = again == row[column]
            lines.append(f"counted again from the verdicts: {again} ({'the same' if good else 'NOT THE SAME'})")
            lines += [f"answers that count: {len(answers)}", *answers]
        except DiceError as error:
            good = False
            lines.append(f"cannot be counted again: {error}")
        links = [next(chain(table, results)), *chain(score_path, results, depth=1)]
    else:
        links = list(chain(table, results))
    for link in links:
        lines.append(f"{'  ' * link.depth}{link.path}")
        lines.append(f"{'  ' * link.depth}  {link.state}  {link.sha256[:16] or 'folder'}  {link.stage}  {link.detail}")
    weak = [link for link in links if link.state not in ("verified", "recorded")]
    good = good and not any(link.state in ("changed", "missing") for link in links)
    if logs := _logs(Path(score_path)):
        lines += ["logs:", *(f"  {log}" for log in logs)]
    lines.append(f"{len(links) - len(weak)} of {len(links)} links are verified.")
    lines += [f"  {link.state}: {link.path}" for link in weak]
    return lines, good


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice audit`."""
    parser.add_argument("table", help="results/table1.csv")
    parser.add_argument("--cell", required=True, help="ROW:COLUMN, e.g. DICE-8B:l1_exec")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice audit`."""
    lines, good = audit(args.table, args.cell)
    print("\n".join(lines))
    return 0 if good else 1
