"""The service under an hour of mixed load: do its memory, files and processes stay what they are?

    python benchmarks/soak.py --minutes 60 --cores 0.5 --out soak.csv

Starts `dice serve` on the CPU back end with one worker and asks it for batches: solutions and mistakes of the mini
benchmark, the red team's tricks and honest candidates, and one of `hostile.py`'s attacks in each batch (fork bombs, leaks
of files and memory, endless loops, early ends, floods of output). Beside them come requests that no client should make.
Each candidate gets a comment of its own, so that it runs anew; its extension comes from the build cache after the first
time. `--cores` is the processor time that service and candidates take in the mean: between batches the client waits.

Each half minute, when nothing is under way, a row of `--out` says what there is of the service: processes, threads, open
descriptors, memory, temporary files, mounts, System V shared memory. At the end the last third of the rows is compared
with the first third after the warm-up; the exit code is 1 where a count or a size grew, a verdict is a `host_error`,
or a candidate's status changed from round to round.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import itertools
import json
import os
import random
import shutil
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, linear_regression

from hostile import LIMITS, PROBLEM, SETTLE_S, attacks, code
from service import Service
from verdict_corpus import mini, red_team

from dice.service.client import Client
from dice.service.schema import Candidate

SAMPLE_S = 30.0
WARM_UP = 0.2
"""Share of the time that is not compared: caches and allocators fill."""
COUNTS = ("processes", "threads", "descriptors", "temporary_files", "mounts", "shared_segments")
SIZES = ("memory_mib", "service_mib", "temporary_mib", "state_mib")
GROWTH = 0.05
"""Of a size, along the line through its values: more than this share of it, and more than SLACK_MIB, is growth."""
SLACK_MIB = 16.0
KEPT = 50
"""Verdicts that the service keeps: it forgets from the first minutes on."""
SHORT_LIMITS = LIMITS | {"import_timeout_s": 12, "forward_timeout_s": 6, "total_timeout_s": 30}
HANGS_UP = (
    b"",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /v1/jobs/" + b"x" * 70_000,
    b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{",
    b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n",
)
"""What no client should send: its sender hangs up at once."""

Sample = dict[str, float]


def batches(marker: str, seed: int) -> Iterator[list[tuple[str, Candidate]]]:
    """Endless batches of (name, candidate): three of mini, two of the red team, one hostile; each text is new."""
    hostile = [("hostile " + a.name, PROBLEM, code(i, a)) for i, a in enumerate(attacks(marker)) if not a.gpu]
    others = [[(row["name"], row["problem_code"], row["code"]) for row in part] for part in (mini(), red_team())]
    drawn = random.Random(seed)
    turns = []
    for rows in (*others, hostile):
        drawn.shuffle(rows)
        turns.append(itertools.cycle(rows))
    for number in itertools.count():
        rows = [next(turn) for turn, count in zip(turns, (3, 2, 1), strict=True) for _ in range(count)]
        drawn.shuffle(rows)
        yield [
            (name, Candidate(problem_id=name, problem_code=problem, code=f"{text}\n# {number}\n"))
            for name, problem, text in rows
        ]


def ours(marker: str) -> list[str]:
    """Process ids of all that was started with the marked PATH, this process left out."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if marker.encode() in Path(f"/proc/{name}/environ").read_bytes() and int(name) != os.getpid():
                found.append(name)
        except OSError:
            continue
    return found


def cpu_s(pids: Sequence[str]) -> float:
    """Processor seconds of the processes and of those that they waited for."""
    ticks = 0
    for pid in pids:
        try:
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: str, word: str) -> float:
    """`Rss`, or `Pss_Anon` (memory of no file; what forks share is divided among them)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(word + ":")) / 1024


def files_below(folder: Path) -> tuple[int, float]:
    """Files and folders below `folder`, and their MiB."""
    found = [Path(at, name) for at, folders, names in os.walk(folder) for name in (*folders, *names)]
    sizes = [path.lstat().st_blocks * 512 for path in found if path.exists()]
    return len(found), sum(sizes) / 2**20


def sample(service: Service, marker: str, temporary: Path) -> Sample:
    """What there is of the service now."""
    pids = ours(marker)
    tree = {"processes": 0, "threads": 0, "descriptors": 0, "memory_mib": 0.0}
    for pid in pids:
        try:
            tree["threads"] += len(os.listdir(f"/proc/{pid}/task"))
            tree["descriptors"] += len(os.listdir(f"/proc/{pid}/fd"))
            tree["memory_mib"] += memory_mib(pid, "Pss_Anon")
            tree["processes"] += 1
        except (OSError, StopIteration):
            continue  # it has just ended
    entries, mib = files_below(temporary)
    return {
        **tree,
        "service_mib": memory_mib(str(service.process.pid), "Rss"),
        "temporary_files": entries,
        "temporary_mib": mib,
        "state_mib": files_below(service.folder / "state")[1],
        "cache_files": files_below(service.folder / "cache")[0],
        "mounts": len(Path(f"/proc/{service.process.pid}/mountinfo").read_text().splitlines()),
        "shared_segments": len(Path("/proc/sysvipc/shm").read_text().splitlines()) - 1,
        "cpu_s": cpu_s(pids),
    }


def growth(rows: Sequence[Sample]) -> dict[str, str]:
    """What grew, and how, in rows with the times `at_s`: the least of a count from the first third to the last,
    a size along a line."""
    rows = [row for row in rows if row["at_s"] >= WARM_UP * rows[-1]["at_s"]]
    third = max(1, len(rows) // 3)
    found = {}
    for name in COUNTS:
        before, after = (min(row[name] for row in part) for part in (rows[:third], rows[-third:]))
        if after > before:
            found[name] = f"at least {before:g} in the first third, {after:g} in the last"
    for name in SIZES:
        values = [row[name] for row in rows]
        slope = linear_regression([row["at_s"] for row in rows], values).slope if len(rows) > 1 else 0.0
        more = slope * (rows[-1]["at_s"] - rows[0]["at_s"])
        if more > max(GROWTH * fmean(values), SLACK_MIB):
            found[name] = f"by {more:.1f} MiB at {fmean(values):.0f} MiB"
    return found


def post(path: str, body: str) -> bytes:
    """A request, written by hand."""
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def be_rude(url: str, ids: Sequence[str]) -> None:
    """Ask what no client should ask, or for jobs that are under way, and hang up without reading."""
    host, _, port = url.removeprefix("http://").partition(":")
    odd = (post("/v1/jobs", text) for text in ('{"candidates":"\\ud800"}', "[" * 90_000, "9" * 5000))
    waits = (post(path, json.dumps({"ids": list(ids), "wait_s": 60})) for path in ("/v1/jobs/wait", "/v1/jobs/stream"))
    for data in (*HANGS_UP, *odd, *waits):
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection((host, int(port)), timeout=10) as connection,
        ):
            connection.sendall(data)


def main() -> int:
    """Load, sample, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--cores", type=float, default=0.5, help="processor time to take in the mean; 0: all there is")
    parser.add_argument("--out", type=Path, required=True, help="CSV of the samples, written as they come")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    marker = f"dice_soak_{os.getpid()}"
    folder = Path(tempfile.mkdtemp(prefix="dice-soak-"))
    temporary = folder / "tmp"
    temporary.mkdir(mode=0o755)
    folder.chmod(0o755)
    os.environ |= {"PATH": f"{os.environ['PATH']}:/{marker}", "TMPDIR": str(temporary)}
    options = ["--problems", "mini", "--client-problems", "--backend", "cpu", "--jobs", "1", "--trials", "1"]
    options += ["--protocol", "both", "--cache", str(folder / "cache"), f"--set=keep_verdicts={KEPT}"]
    options += [f"--set=limits.{name}={value}" for name, value in SHORT_LIMITS.items()]
    service = Service(folder, options)
    rows: list[Sample] = []
    told: dict[str, Counter[str]] = {}
    begun = time.monotonic()
    with (
        contextlib.ExitStack() as at_end,
        asked.out.open("w", newline="") as stream,
        Client(service.url) as client,
    ):
        at_end.callback(service.stop)
        table: csv.DictWriter[str] | None = None
        for batch in batches(marker, asked.seed):
            candidates = [candidate for _, candidate in batch]
            be_rude(service.url, [view.id for view in client.submit(candidates)])
            for index, verdicts in client.verify_all(candidates):
                told.setdefault(batch[index][0], Counter())[verdicts[0].status] += 1
            while asked.cores and cpu_s(ours(marker)) > asked.cores * (time.monotonic() - begun):
                time.sleep(0.5)
            at_s = time.monotonic() - begun
            if at_s >= SAMPLE_S * len(rows):
                time.sleep(2)  # what the last batch left goes
                row = sample(service, marker, temporary)
                rows.append({"at_s": round(at_s), "verdicts": sum(map(Counter.total, told.values())), **row})
                table = table or csv.DictWriter(stream, list(rows[0]))
                if len(rows) == 1:
                    table.writeheader()
                table.writerow({name: round(value, 1) for name, value in rows[-1].items()})
                stream.flush()
            if at_s >= 60 * asked.minutes:
                break
    gone_by = time.monotonic() + SETTLE_S
    while (left := ours(marker)) and time.monotonic() < gone_by:
        time.sleep(0.5)
    statuses = sum(told.values(), Counter())
    report = {
        "minutes": round(rows[-1]["at_s"] / 60, 1),
        "samples": len(rows),
        "verdicts": statuses.total(),
        "hostile": sum(c.total() for name, c in told.items() if name.startswith("hostile ")),
        "cores": round(rows[-1]["cpu_s"] / rows[-1]["at_s"], 2),
        "statuses": dict(statuses.most_common()),
        "changed": {name: dict(counts) for name, counts in told.items() if len(counts) > 1},
        "left": len(left),
        "grew": growth(rows),
    }
    print(json.dumps(report, indent=2))
    shutil.rmtree(folder, ignore_errors=True)
    return int(bool(report["grew"] or report["changed"] or left or statuses["host_error"]))


if __name__ == "__main__":
    sys.exit(main())
