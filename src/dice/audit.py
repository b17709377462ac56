"""`dice audit`: the chain of evidence behind one cell of a table, with hashes.

    dice audit results/table1.csv --cell DICE-8B:l1_exec

It walks the manifests that every stage writes: table, score, verdicts, generations, checkpoint, data. A link is
`verified` when the file's sha256 is the one that the manifest above it (or its own) wrote down, `recorded` when the file
was temporary and both manifests agree about its hash, `changed` when it is another, `missing` when it is gone, and
`unverified` when nothing wrote a hash down (supplied files and folders). A folder is what its `SHA256SUMS`, or the
manifest of its download, says of each of its files.
The cell itself is counted again from the verdicts. The exit code is 1 when a link has changed or the recount differs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dice.errors import DiceError
from dice.manifest import manifest_path, sha256_file
from dice.report.tables import METRICS, percent, read_csv
from dice.study.publish import SUMS


@dataclass(frozen=True)
class Link:
    """One file or folder of the chain."""

    depth: int
    path: str
    state: str
    sha256: str
    stage: str
    detail: str


def read_manifest(path: Path) -> dict[str, Any] | None:
    """Manifest of a result, beside it or (for a model that was published) inside its folder; None where there is none."""
    for place in (manifest_path(path), path / "model.manifest.json"):
        if place.is_file():
            return json.loads(place.read_text(encoding="utf-8"))
    return None


def folder_files(folder: Path) -> list[Path]:
    """The weights of a checkpoint folder."""
    return sorted(folder.glob("*.safetensors"))


def folder_hashes(folder: Path, manifest: dict[str, Any] | None) -> dict[str, str]:
    """sha256 of each file of a folder as it was written down: in `SHA256SUMS`, or when the folder was fetched."""
    sums = folder / SUMS
    if not sums.is_file():
        return dict((manifest or {"extra": {}})["extra"].get("files", {}))
    rows = (line.split(maxsplit=1) for line in sums.read_text(encoding="utf-8").splitlines())
    return {name: digest for digest, name in rows}


def folder_state(folder: Path, hashes: dict[str, str]) -> str:
    """`verified` when every file that was written down is there as it was; `unverified` where none was."""
    if not hashes:
        return "unverified"
    same = all((folder / name).is_file() and sha256_file(folder / name) == digest for name, digest in hashes.items())
    return "verified" if same else "changed"


def _inputs(manifest: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    """(path, recorded sha256 or None) of everything that a stage read."""
    recorded: dict[str, str] = manifest["inputs"]
    yield from recorded.items()
    spec = manifest["spec"]
    named = [spec.get(name) for name in ("model", "tokenizer", "candidates", "problems")]
    for value in named:
        if isinstance(value, str) and value not in recorded and ("/" in value or Path(value).exists()):
            yield value, None


def chain(path: str, recorded: str | None = None, depth: int = 0, seen: set[str] | None = None) -> Iterator[Link]:
    """The links from `path` down, each file once."""
    seen = set() if seen is None else seen
    if path in seen:
        return
    seen.add(path)
    place = Path(path)
    manifest = read_manifest(place)
    stage = manifest["stage"] if manifest else "no manifest"
    detail = ""
    if manifest:
        gpus = ", ".join(gpu["name"] for gpu in manifest["gpus"]) or "no GPU"
        commit = (manifest["git_commit"] or "no commit")[:12] + (" with local changes" if manifest["git_dirty"] else "")
        detail = f"{manifest['started']}, {manifest['wall_s']:.0f} s, {gpus}, image {manifest['image']}, {commit}"
    if place.is_file():
        digest = sha256_file(place)
        known = recorded or (manifest or {}).get("output_sha256")
        state = "unverified" if known is None else ("verified" if known == digest else "changed")
    elif place.is_dir():
        files = folder_files(place)
        digest = sha256_file(files[0]) if len(files) == 1 else ""
        state = folder_state(place, folder_hashes(place, manifest))
    else:
        digest, state = "", "missing"
        if manifest and recorded and recorded == manifest["output_sha256"]:
            digest, state = recorded, "recorded"
    yield Link(depth, path, state, digest or (recorded or ""), stage, detail)
    if manifest:
        for child, child_hash in _inputs(manifest):
            yield from chain(child, child_hash, depth + 1, seen)
        weights = manifest["extra"].get("weights") if manifest["stage"] == "generate" else None
        for name, digest in (weights or {}).items():
            yield from chain(str(Path(manifest["spec"]["model"]) / name), digest, depth + 1, seen)


def recount(score_path: str, level: int, metric: str, robust: bool) -> str:
    """The cell counted again from the verdicts that the score names."""
    from dice.evaluation.score import count
    from dice.jsonl import read_jsonl
    from dice.kernels.verdict import Verdict

    manifest = read_manifest(Path(score_path))
    if manifest is None:
        raise DiceError(f"{score_path}: has no manifest, so its verdicts are not known.")
    spec = manifest["spec"]
    from dice.data.problem import Problem

    levels = {problem.id: problem.level for problem in read_jsonl(spec["problems"], Problem)}
    verdicts = [[v for v in read_jsonl(path, Verdict) if v.protocol == spec["protocol"]] for path in spec["verdicts"]]
    row = next((r for r in count(verdicts, levels) if r.level == level and r.robust == robust), None)
    rate = row.metrics[metric] if row else None  # type: ignore[index]
    return percent(rate.value if rate else None)


def audit(table: str, cell: str) -> tuple[list[str], bool]:
    """(lines to print, whether everything that can be verified holds). Raises DiceError for a cell that is not there."""
    name, colon, column = cell.partition(":")
    rows = {row["row"]: row for row in read_csv(table)}
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
    good = True
    level_name, _, metric = column.partition("_")
    if metric in METRICS:
        table_spec = (read_manifest(Path(table)) or {"spec": {"rows": []}})["spec"]
        robust = next((r["robust"] for r in table_spec["rows"] if r["row"] == name), True)
        again = recount(score_path, int(level_name[1:]), metric, robust)
        good = again == row[column]
        lines.append(f"counted again from the verdicts: {again} ({'the same' if good else 'NOT THE SAME'})")
    links = list(chain(table, depth=0, seen=None)) if metric not in METRICS else []
    if not links:
        links = [*chain(score_path, depth=1)]
        links.insert(0, next(chain(table)))
    for link in links:
        lines.append(f"{'  ' * link.depth}{link.path}")
        lines.append(f"{'  ' * link.depth}  {link.state}  {link.sha256[:16] or 'folder'}  {link.stage}  {link.detail}")
    weak = [link for link in links if link.state not in ("verified", "recorded")]
    good = good and not any(link.state == "changed" for link in links)
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
