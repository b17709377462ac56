"""Kernels a minute on sets of candidates through `dice verify` as its user runs it: empty build cache, correctness only.

    python benchmarks/throughput.py --work DIR --out rows.jsonl [--limit-s 290] v0.jsonl v0_1.jsonl ... [-- FLAGS]

The sets run in the order given. With `--limit-s` each has an equal share of the seconds that are left; then its command is
ended, and what it has judged counts. The machine's own part (support library, precompiled headers) is made first and is a
row of its own; builds of an earlier run in DIR are dropped. public_candidates.py makes the sets of public kernels.

A row has: candidates, those judged, wall seconds from the command's start, judged a minute, the seconds until the first
verdict and those that the last twentieth took, statuses, host errors, verdicts that differ from the set's own `label`
(correct or not, by whoever published it), the seconds of all candidates by phase, the slowest candidates, and how busy the
machine was: cores of this machine, the GPU's share of time with a kernel on it, most of its memory.
`--verdicts FILE` keeps a line for each candidate, to compare two runs. FLAGS are those of `dice verify`.

With `--timing` candidates are timed, too, and `timed_share` says for which part of the wall time one of those judged was.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from verify_command import Row, verify

from dice.kernels.api import Backend
from dice.kernels.builder.builder import Builder

N_SLOWEST = 5
ENDING_S = 3.0
"""Kept for the end of a command whose time is up."""


class Load:
    """How busy the machine is while a block runs; a sample of the GPUs each second where nvidia-smi is."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, float]] = []
        self._reader: threading.Thread | None = None

    def _read(self, stream: Any) -> None:
        for line in stream:
            with contextlib.suppress(ValueError):
                share, mib = map(float, line.split(","))
                self._samples.append((share, mib))

    @contextlib.contextmanager
    def measured(self) -> Iterator[Row]:
        """Yields a row that is filled when the block ends."""
        row: Row = {}
        watcher = None
        if shutil.which("nvidia-smi"):
            query = "--query-gpu=utilization.gpu,memory.used"
            command = ["nvidia-smi", query, "--format=csv,noheader,nounits", "--loop-ms=1000"]
            watcher = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self._reader = threading.Thread(target=self._read, args=(watcher.stdout,), daemon=True)
            self._reader.start()
        busy, began = busy_core_seconds(), time.monotonic()
        try:
            yield row
        finally:
            row["busy_cores"] = round((busy_core_seconds() - busy) / (time.monotonic() - began), 1)
            if watcher is not None and self._reader is not None:
                watcher.terminate()
                watcher.wait()
                self._reader.join()
            if self._samples:
                shares, mib = zip(*self._samples, strict=True)
                row |= {"gpu_busy_share": round(statistics.mean(shares) / 100, 2), "gpu_gib": round(max(mib) / 1024, 1)}


def busy_core_seconds() -> float:
    """Seconds that this machine's cores have worked since it started."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def prepare(cache: Path, backend: Backend) -> Row:
    """Drop earlier builds, and make what a machine makes once."""
    shutil.rmtree(cache / "objects", ignore_errors=True)
    began = time.monotonic()
    report = Builder(cache, backend).prepare(len(os.sched_getaffinity(0)), everything=backend == "cuda")
    return {"set": "once per machine", "wall_s": round(time.monotonic() - began, 1), "failures": report.failures}


def ended(verdict: Row) -> float:
    """When a candidate's verdict was there, as a Unix time."""
    return datetime.fromisoformat(verdict["started"]).timestamp() + verdict["seconds"]


def measure(candidates: Path, work: Path, flags: list[str], limit_s: float | None) -> tuple[Row, list[Row]]:
    """One set: its row, and its verdicts."""
    given = [json.loads(line) for line in candidates.read_text(encoding="utf-8").splitlines()]
    out = work / f"{candidates.stem}.verdicts.jsonl"
    for old in work.glob(f"{out.name}*"):
        old.unlink()
    began = time.time()
    with Load().measured() as load:
        wall_s, verdicts = verify(candidates, out, *flags, limit_s=limit_s)
    if limit_s is not None:
        wall_s = min(wall_s, limit_s)  # a command that is ended takes a moment for its workers' end
    phases: Counter[str] = Counter()
    for verdict in verdicts:
        phases.update(verdict["phase_seconds"])
    ends = sorted(ended(verdict) - began for verdict in verdicts)
    slowest = sorted(verdicts, key=lambda verdict: -verdict["seconds"])[:N_SLOWEST]
    row: Row = {
        "set": candidates.stem,
        "candidates": len(given),
        "judged": len(verdicts),
        "wall_s": round(wall_s, 1),
        "a_minute": round(60 * len(verdicts) / wall_s, 1),
        "first_verdict_s": round(ends[0], 1) if ends else None,
        "last_twentieth_s": round(ends[-1] - ends[int(0.95 * (len(ends) - 1))], 1) if ends else None,
        "statuses": dict(Counter(verdict["status"] for verdict in verdicts).most_common()),
        "host_errors": sum(verdict["status"] == "host_error" for verdict in verdicts),
        "unlike_label": unlike_labels(given, verdicts),
        "phase_seconds": {name: round(spent, 1) for name, spent in phases.most_common()},
        "build_paths": dict(Counter(verdict["build"]["path"] for verdict in verdicts if verdict["build"])),
        "slowest": [f"{row['problem_id']} {row['seconds']:.0f} s {row['status']}" for row in slowest],
        "timed_share": round(phases["timing"] / wall_s, 2),
        **load,
    }
    return row, verdicts


def unlike_labels(given: list[Row], verdicts: list[Row]) -> list[str]:
    """Candidates whose publisher said otherwise."""
    labels = {(row["problem_id"], row.get("sample", 0)): row.get("label") for row in given}
    return [
        f"{row['problem_id']} {row['sample']} {row['functional_status']}"
        for row in verdicts
        if (label := labels[row["problem_id"], row["sample"]]) is not None
        and label != (row["functional_status"] == "correct")
    ]


def short(name: str, verdict: Row) -> Row:
    """What is kept of a verdict."""
    kept = ("problem_id", "sample", "protocol", "status", "functional_status", "seconds", "phase_seconds", "started")
    return {"set": name, **{key: verdict[key] for key in kept}, "message": verdict["message"][:300]}


def main() -> None:
    """One row a set, as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path, help="files of candidates")
    parser.add_argument("--work", type=Path, required=True, help="folder of the build cache and of verdicts")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, one for each set")
    parser.add_argument("--verdicts", type=Path, help="JSON lines, one for each candidate")
    parser.add_argument("--backend", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--limit-s", type=float, help="seconds for everything")
    parser.add_argument("--timing", action="store_true", help="time the candidates that are right")
    ours_from = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, flags = parser.parse_args(sys.argv[1:ours_from]), sys.argv[ours_from + 1 :]
    began = time.monotonic()
    args.work.mkdir(parents=True, exist_ok=True)
    cache = args.work / "cache"
    flags = ["--backend", args.backend, "--cache", str(cache), *([] if args.timing else ["--no-timing"]), *flags]

    def tell(row: Row) -> None:
        with args.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    tell(prepare(cache, args.backend))
    for number, path in enumerate(args.sets):
        limit_s = None
        if args.limit_s is not None:
            share_s = (args.limit_s - (time.monotonic() - began)) / (len(args.sets) - number)
            limit_s = max(1.0, share_s - ENDING_S)
        row, verdicts = measure(path, args.work, flags, limit_s)
        tell(row)
        if args.verdicts is not None:
            with args.verdicts.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(short(path.stem, verdict)) + "\n" for verdict in verdicts)


if __name__ == "__main__":
    main()
