"""The service under load and kills: N candidates over HTTP from M connections, with K kills, none lost or doubled.

    python benchmarks/service.py --candidates 1024 --connections 64 --kills 3 --backend cuda
    python benchmarks/service.py --candidates 1024 --builds 64 --connections 64 --kills 3 --backend cpu --trials 1

Starts `dice serve` on the mini benchmark with an empty build cache, and asks it from M clients, each with connections
of its own and an equal share of the candidates. These are the tests' solutions of the mini benchmark, over and over;
each has its own number in its CUDA text, so that each is built, and every eighth is broken. `--file` takes others: JSON
lines with `problem_id`, `code`, and `problem_code` unless the problems are mini's. K times, after equal shares of the
verdicts, the service is killed by SIGKILL and started again with its folder, or, every second time, the fork server of
its workers is. Needs nothing but the project with its extra `serve`.

Printed at the end as JSON: wall seconds from the first submission to the last verdict, verdicts a minute, candidates
without a verdict (`lost`), candidates with two verdicts or two of one candidate in the journal (`doubled`), host errors,
statuses, and what was killed when.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from dice.jsonl import read_objects
from dice.service.client import Client
from dice.service.schema import Candidate

SOLUTIONS = Path(__file__).parents[1] / "tests" / "kernels" / "problems" / "mini" / "solutions"


def mini_candidates(builds: int) -> Iterator[Candidate]:
    """Endless variants of the mini benchmark's solutions: `builds` texts for the compiler, every eighth of them broken."""
    files = sorted(SOLUTIONS.glob("level*/*.py"))
    for number in itertools.count():
        variant = number % builds
        file, value = files[variant % len(files)], variant if variant % 8 != 7 else ""
        mark = f"__device__ int variant_{variant}() {{ return 0 + {value}; }}"
        code = re.sub(r"(?m)^(?=(?:template[^\n]*\n)?__global__)", mark + "\n", file.read_text(), count=1)
        yield Candidate(problem_id=f"{file.parent.name}/{file.stem}", code=f"{code}\n# {number}\n")


class Service:
    """`dice serve` as a process that is killed and started again."""

    def __init__(self, folder: Path, options: list[str]) -> None:
        self.folder, self.killed = folder, []
        self._command = [sys.executable, "-m", "dice.cli", "serve", "--state", str(folder / "state"), *options]
        self._log = (folder / "serve.log").open("ab")
        self.url, self._port = "", "0"
        self.start()

    def start(self) -> None:
        """Start it, on the port that it had."""
        file = self.folder / "state" / "url"
        file.unlink(missing_ok=True)
        self.process = subprocess.Popen([*self._command, "--port", self._port], stdout=self._log, stderr=self._log)
        while not file.exists():
            if self.process.poll() is not None:
                raise SystemExit((self.folder / "serve.log").read_text()[-2000:])
            time.sleep(0.05)
        self.url = file.read_text().strip()
        self._port = self.url.rpartition(":")[2]

    def kill(self, number: int) -> str:
        """Kill the service (even numbers), or the fork server of its workers; says what."""
        if number % 2:
            for child in self._children():
                if "multiprocessing.forkserver" in Path(f"/proc/{child}/cmdline").read_text():
                    os.kill(child, signal.SIGKILL)
                    return "the fork server of all workers"
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.start()
        return "the service"

    def _children(self) -> list[int]:
        files = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(child) for file in files for child in file.read_text().split()]

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()
        self._log.close()


def main() -> None:
    """Run the load and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=1024)
    parser.add_argument("--builds", type=int, help="different texts for the compiler; default: as many as candidates")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--backend", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--file", help="JSON lines of candidates; the first N are taken")
    parser.add_argument("--cache", help="build cache; default: an empty one")
    parser.add_argument("--no-timing", action="store_true", help="correctness only")
    parser.add_argument("--trials", default="5", help="correctness trials")
    parser.add_argument("--timeout-s", type=float, default=900.0, help="after this, what has no verdict is lost")
    asked = parser.parse_args()
    every = (
        (Candidate.model_validate(row) for _, row in read_objects(asked.file))
        if asked.file
        else mini_candidates(asked.builds or asked.candidates)
    )
    candidates = list(islice(every, asked.candidates))
    folder = Path(tempfile.mkdtemp(prefix="dice-service-"))
    options = ["--problems", "mini", "--backend", asked.backend, "--trials", asked.trials]
    options += ["--cache", asked.cache or str(folder / "cache"), *(["--no-timing"] if asked.no_timing else [])]
    options += ["--client-problems"] if asked.file else []
    service = Service(folder, options)
    found: list[tuple[int, str]] = []
    came = threading.Condition()

    def ask(first: int) -> None:
        mine = candidates[first :: asked.connections]
        with Client(service.url) as client:
            for number, verdicts in client.verify_all(mine):
                with came:
                    found.append((first + number * asked.connections, verdicts[0].status))
                    came.notify_all()

    began = time.monotonic()
    threads = [threading.Thread(target=ask, args=(first,), daemon=True) for first in range(asked.connections)]
    for thread in threads:
        thread.start()
    for number in range(asked.kills):
        share = (number + 1) * len(candidates) // (asked.kills + 1)
        with came:
            came.wait_for(lambda share=share: len(found) >= share, asked.timeout_s)
        at_s = time.monotonic() - began
        service.killed.append({"at_s": round(at_s, 1), "after": len(found), "what": service.kill(number)})
    with came:
        came.wait_for(lambda: len(found) >= len(candidates), max(0.0, asked.timeout_s - (time.monotonic() - began)))
    wall_s = time.monotonic() - began
    service.stop()
    rows = [row for _, row in read_objects(folder / "state" / "jobs.jsonl") if row.get("event") == "finished"]
    finished = Counter(row["id"] for row in rows if row["verdicts"][0]["status"] != "host_error")
    told = Counter(number for number, _ in found)
    report = {
        "wall_s": round(wall_s, 1),
        "per_minute": round(60 * len(found) / wall_s, 1),
        "candidates": len(candidates),
        "connections": asked.connections,
        "lost": len(candidates) - len(told),
        "doubled": sum(n > 1 for n in told.values()) + sum(n > 1 for n in finished.values()),
        "host_errors": sum(status == "host_error" for _, status in found),
        "statuses": dict(Counter(status for _, status in found).most_common()),
        "kills": service.killed,
    }
    print(json.dumps(report, indent=2))
    if report["lost"] or report["doubled"]:
        print((folder / "serve.log").read_text()[-2000:], file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(1)  # clients that wait for what is lost would wait on
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
