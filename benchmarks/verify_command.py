"""`dice verify` as its user runs it, for the benchmarks: candidate files, the command, its verdicts, their quantiles."""

from __future__ import annotations

import hashlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def read_pairs(path: str | Path) -> list[Row]:
    """Pairs from a JSON list or JSON lines, in any of the names that dice.kernels.records.candidate_files reads.

    Each becomes {id, problem_code, code, sha256}.
    """
    text = Path(path).read_text(encoding="utf-8")
    items = json.loads(text) if text.lstrip().startswith("[") else [json.loads(line) for line in text.splitlines()]
    rows = []
    for item in items:
        problem = item.get("problem_code") or item.get("pytorch_code") or item.get("ref_code")
        code = item.get("code") or item.get("cuda_code") or item.get("custom_code")
        identity = item.get("problem_id") or item.get("id")
        if identity is None:
            identity = f"level{item['level_id']}/{item['task_id']}"
        if problem and code:
            digest = hashlib.sha256(code.encode()).hexdigest()
            rows.append({"id": str(identity), "problem_code": problem, "code": code, "sha256": digest})
    return rows


def write_candidates(path: Path, rows: Iterable[Row]) -> Path:
    """A candidates file of pairs (`id`, `problem_code`, `code`, `sample` where there is one); returns its path."""
    lines = [
        {
            "problem_id": row["id"],
            "sample": row.get("sample", 0),
            "problem_code": row["problem_code"],
            "code": row["code"],
        }
        for row in rows
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def verify(candidates: Path, out: Path, *flags: str, limit_s: float | None = None) -> tuple[float, list[Row]]:
    """Run `dice verify`; returns (wall seconds, verdict rows). Its summary goes to OUT.log.

    After `limit_s` the command is ended: the rows are those that it has written, and the same call goes on from there.
    Leaves the program when the command fails.
    """
    command = [sys.executable, "-m", "dice.cli", "verify", "--candidates", str(candidates), "--out", str(out)]
    started = time.monotonic()
    with out.with_suffix(".log").open("w") as log:
        process = subprocess.Popen([*command, "--quiet", *flags], stdout=log, stderr=log)
        try:
            code = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            code = 0
    if code not in (0, 3):
        words = out.with_suffix(".log").read_text(errors="replace").splitlines()[-3:]
        sys.exit(f"dice verify failed with exit code {code}: {' '.join(words)}")
    return time.monotonic() - started, read_verdicts(out)


def quantiles(values: list[float]) -> str:
    """median, 95 % quantile and largest value, in columns of eight; dashes for no values."""
    if not values:
        return f"{'-':>8s} {'-':>8s} {'-':>8s}"
    ordered = sorted(values)
    return f"{statistics.median(ordered):8.2f} {ordered[int(0.95 * (len(ordered) - 1))]:8.2f} {ordered[-1]:8.2f}"


def read_verdicts(out: Path) -> list[Row]:
    """Verdicts of a finished run, or those that an unfinished one has written so far."""
    rows: list[Row] = []
    for path in (out, out.with_name(out.name + ".partial")):
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # a line that was being written
            if "status" in row:
                rows.append(row)
    return list({(row["problem_id"], row["sample"], row["protocol"]): row for row in rows}.values())
