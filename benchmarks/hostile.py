"""Hostile candidates among honest ones, through `dice verify`: does anybody else notice?

    python benchmarks/hostile.py --work DIR [--backend cuda|cpu]

The honest candidates are verified alone, then once more mixed with the hostile ones: fork bombs, allocations of 100 GiB,
endless loops (Python, C++, on the GPU), early exits, kills, CUDA errors, floods of output, disks filled, network calls,
writes outside of their folder. Demanded: the batch ends, no hostile verdict is a host_error or correct where it should
not be, each honest verdict is what it was alone, and no process, file, shared memory or GPU memory is left over.
The exit code is 1 otherwise. Attacks that are over at once come first, so that a batch that is cut off (`--limit-s`) has
most of its verdicts; what it lacks is listed by name.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

from verify_command import Row, verify, write_candidates

HONEST_COUNT = 12
SETTLE_S = 10.0
"""For the command's own processes, which leave after it; what a candidate leaves would stay."""
LIMITS = {
    "import_timeout_s": 15,
    "forward_timeout_s": 8,
    "total_timeout_s": 40,
    "memory_gib": 4,
    "file_gib": 0.25,
    "processes": 128,
}
PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return [64]
"""
CODE = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="relu_{number}",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void relu_kernel(const float* in, float* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {device}
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}}
torch::Tensor relu(torch::Tensor x) {{
    auto out = torch::empty_like(x);
    int n = x.numel();
    {host}
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}}
// {number}
""",
    functions=["relu"],
)
{module}


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)

    def forward(self, x):
{forward}
        return ext.relu(self.linear(x))
'''
FORK_BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import signal
        for number in range(1, 32):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            time.sleep(1)
    os._exit(0)
"""
KILL_OTHERS = """
import ctypes, os, signal
for pid in (os.getppid(), 1, -1):
    for number in (signal.SIGTERM, signal.SIGKILL):
        ctypes.CDLL(None).kill(pid, number)
"""
FILL_DISK = """
import os
for number in range(100_000):
    with open(f"fill{number}", "wb") as stream:
        stream.write(b"x" * (1 << 24))
"""
FLOOD = """
import os
block = b"x" * (1 << 20)
while True:
    os.write(1, block)
"""
NETWORK = """
import socket
socket.create_connection(("1.1.1.1", 80), timeout=5)
raise SystemExit("reached the network")
"""
FILL_GPU = """
self.kept = []
try:
    while True:
        self.kept.append(torch.empty(1 << 28, device=x.device))
except RuntimeError:
    pass
import time
time.sleep(4)
self.kept.clear()
torch.cuda.empty_cache()
"""
FAILURES = frozenset({"runtime_error", "import_error", "timeout", "out_of_memory"})


@dataclass(frozen=True)
class Attack:
    """A hostile candidate: code at the top of the module, in forward, in the kernel or before its launch."""

    name: str
    module: str = ""
    forward: str = ""
    device: str = ""
    host: str = ""
    statuses: frozenset[str] = FAILURES
    """Functional statuses that are right."""
    gpu: bool = False
    """Means something only on a GPU."""
    seconds: float = 1.0
    """About how long it lasts: the order of their turns."""


def outside(marker: str) -> str:
    """Writes below every folder it can name but its own, into a file of that name."""
    folders = (
        "/",
        "/etc",
        "/usr/lib",
        "/dev",
        "/dev/shm",
        "/tmp",
        "/var/tmp",
        "/root",
        "/home",
        "/opt",
        "/proc/sys/kernel",
    )
    return f"""
import os, torch
for folder in {folders!r} + (os.path.dirname(torch.__file__), os.path.expanduser("~root"), "..", "../.."):
    try:
        open(os.path.join(folder, {marker!r}), "w").write("x")
    except OSError:
        pass
"""


def attacks(marker: str) -> list[Attack]:
    """All of them. `marker`: name of the files that one of them tries to leave behind."""
    harmless = frozenset({"correct"}) | FAILURES
    return [
        Attack("fork bomb at import", module=FORK_BOMB, seconds=9),
        Attack("fork bomb in forward", forward=FORK_BOMB, seconds=35),
        Attack("daemon that ignores signals", forward=DAEMON, statuses=harmless),
        Attack(
            "100 GiB of host memory at once",
            module="x = bytearray(b'x') * (100 << 30)",
            statuses=frozenset({"out_of_memory"}),
            seconds=11,
        ),
        Attack(
            "100 GiB of host memory bit by bit",
            forward='self.kept = [bytearray(b"x" * (1 << 26)) for _ in range(1600)]',
            statuses=frozenset({"out_of_memory", "timeout"}),
            seconds=10,
        ),
        Attack(
            "endless loop in Python, at import",
            module="while True:\n    pass",
            statuses=frozenset({"timeout"}),
            seconds=15,
        ),
        Attack("endless loop in Python", forward="while True:\n    pass", statuses=frozenset({"timeout"}), seconds=7),
        Attack(
            "endless loop in C++",
            host="volatile int forever = 1; while (forever) {}",
            statuses=frozenset({"timeout"}),
            seconds=8,
        ),
        Attack(
            "endless loop on the GPU",
            device="while (clock64()) {}",  # a volatile local variable is no reason for ptxas to keep a loop
            statuses=frozenset({"timeout"}),
            gpu=True,
            seconds=10,
        ),
        Attack(
            "endless loop on the GPU, on a stream of its own",
            device="while (n < 0 && clock64()) {}",
            host="static cudaStream_t side = nullptr;\n"
            "    if (!side) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);\n"
            "    relu_kernel<<<1, 1, 0, side>>>(x.data_ptr<float>(), out.data_ptr<float>(), -1);",
            statuses=frozenset({"timeout"}),
            gpu=True,
            seconds=10,
        ),
        Attack("os._exit(0) at import", module="import os\nos._exit(0)"),
        Attack("os._exit(0) in forward", forward="import os\nos._exit(0)"),
        Attack("kills its parent and everybody", forward=KILL_OTHERS, statuses=harmless),
        Attack("kills itself", forward="import os\nos.kill(os.getpid(), 9)"),
        Attack("segmentation fault", host="*(volatile int*)8 = 1;"),
        Attack("flood of output at import", module=FLOOD, statuses=frozenset({"timeout"}), seconds=15),
        Attack("flood of output", forward=FLOOD, statuses=frozenset({"timeout"}), seconds=8),
        Attack("fills the disk", forward=FILL_DISK, seconds=3),
        Attack("network call", module=NETWORK, seconds=3),
        Attack("writes outside its folder", module=outside(marker), statuses=harmless),
        Attack("closes every descriptor", forward="import os\nos.closerange(0, 1000)"),
        Attack("illegal address on the GPU", device="out[i + (1LL << 40)] = 1.f;", gpu=True),
        Attack("assertion on the GPU", device="if (i >= 0) __trap();", gpu=True, seconds=10),
        Attack(
            "300 GiB of GPU memory",
            forward="self.kept = torch.empty(300 << 28, device=x.device)",
            statuses=frozenset({"out_of_memory"}),
            gpu=True,
            seconds=2,
        ),
        Attack("fills the GPU's memory for a while", forward=FILL_GPU, statuses=harmless, gpu=True, seconds=6),
        Attack(
            "100 GiB through cudaMalloc, never freed",
            host="static void* kept = nullptr; if (!kept) cudaMalloc(&kept, 100ull << 30); cudaGetLastError();",
            statuses=harmless,
            gpu=True,
            seconds=5,
        ),
    ]


def code(number: int, attack: Attack | None = None) -> str:
    """The source of an honest candidate, or of an attack."""
    a = attack or Attack("honest")
    forward = textwrap.indent(textwrap.dedent(a.forward).strip("\n") or "pass", " " * 8)
    return CODE.format(number=number, module=a.module, forward=forward, device=a.device, host=a.host)


def rows(marker: str, backend: str) -> tuple[list[Row], dict[str, Attack]]:
    """Honest rows, and the attacks by the name of their problem."""
    honest = [
        {"id": f"honest/{number:02d}", "problem_code": PROBLEM, "code": code(number)} for number in range(HONEST_COUNT)
    ]
    chosen = [attack for attack in attacks(marker) if backend == "cuda" or not attack.gpu]
    chosen.sort(key=lambda attack: attack.seconds)
    return honest, {f"hostile/{number:02d} {attack.name}": attack for number, attack in enumerate(chosen)}


def mixed(honest: list[Row], hostile: dict[str, Attack]) -> list[Row]:
    """Hostile and honest candidates in turns, the hostile ones ahead of as many honest ones as possible."""
    theirs = [
        {"id": name, "problem_code": PROBLEM, "code": code(100 + number, attack)}
        for number, (name, attack) in enumerate(hostile.items())
    ]
    merged: list[Row] = []
    for index in range(max(len(honest), len(theirs))):
        merged += theirs[2 * index : 2 * index + 2] + honest[index : index + 1]
    return merged


@dataclass(frozen=True)
class Traces:
    """What there is of this benchmark's runs: others may use the machine, and other GPUs of it, at the same time."""

    processes: frozenset[tuple[int, str]]
    files: frozenset[str]
    gpu_mib: int

    @classmethod
    def now(cls, marker: str, temporary: Path) -> Traces:
        """Processes that were started with the marked PATH; files below `temporary`, files with the marker in their
        names and files of other users in the folders for all; memory in use on the GPUs that this process sees."""
        processes = set()
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                environment = Path(f"/proc/{name}/environ").read_bytes()
                command = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if marker.encode() in environment:
                processes.add((int(name), command))
        files = {str(path) for path in temporary.iterdir()}
        for folder in ("/tmp", "/dev/shm", "/var/tmp"):
            for entry in os.scandir(folder):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
                        files.add(entry.path)
        named = ["find", "/", "-xdev", "-name", f"*{marker}*"]
        files |= set(subprocess.run(named, capture_output=True, text=True, check=False).stdout.split())
        used = 0
        if shutil.which("nvidia-smi"):
            query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
            if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
                query += ["-i", visible]
            used = sum(map(int, subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()))
        return cls(frozenset(processes), frozenset(files), used)


def left_over(before: Traces, after: Traces) -> list[str]:
    """What is there now and was not before."""
    processes = [f"process {pid}: {command[:120]}" for pid, command in sorted(after.processes - before.processes)]
    files = [f"file {path}" for path in sorted(after.files - before.files) if not path.endswith("dice-gpu-locks")]
    memory = [f"{after.gpu_mib - before.gpu_mib} MiB of GPU memory"] if after.gpu_mib > before.gpu_mib + 64 else []
    return processes + files + memory


def word(verdict: Row | None) -> tuple[object, ...]:
    """What must not change."""
    if verdict is None:
        return ("no verdict",)
    names = tuple(sorted(finding["name"] for finding in verdict["deception"]))
    return verdict["status"], verdict["functional_status"], verdict["trials"], names


def main() -> int:
    """Two runs, three tables."""
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of candidates and verdicts, emptied first")
    parser.add_argument("--backend", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--cache", help="build cache folder")
    parser.add_argument("--limit-s", type=float, default=300.0, help="for the mixed batch; more is a failure")
    parser.add_argument("--jobs", type=int, help="candidates at a time; default: that of the command")
    parser.add_argument("--only", nargs="+", help="attacks whose names contain one of these; default: all")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    marker = f"dice_was_here_{os.getpid()}"
    temporary = Path(tempfile.mkdtemp(prefix="hostile-"))
    temporary.chmod(0o755)
    # Whatever the command starts has both in its environment, candidates and what they start included.
    os.environ |= {"PATH": f"{os.environ['PATH']}:/{marker}", "TMPDIR": str(temporary)}
    honest, hostile = rows(marker, options.backend)
    hostile = {name: a for name, a in hostile.items() if any(word in name for word in options.only or [""])}
    flags = ["--backend", options.backend, "--protocol", "both", "--no-timing"]
    flags += [f"--set=limits.{name}={value}" for name, value in LIMITS.items()]
    flags += ["--cache", options.cache] if options.cache else []
    flags += ["--jobs", str(options.jobs)] if options.jobs else []

    alone_s, alone = verify(write_candidates(options.work / "honest.in", honest), options.work / "honest.jsonl", *flags)
    before = Traces.now(marker, temporary)
    mixed_s, found = verify(
        write_candidates(options.work / "mixed.in", mixed(honest, hostile)),
        options.work / "mixed.jsonl",
        *flags,
        limit_s=options.limit_s,
    )
    deadline = time.monotonic() + SETTLE_S
    while (left := left_over(before, Traces.now(marker, temporary))) and time.monotonic() < deadline:
        time.sleep(0.5)
    shutil.rmtree(temporary, ignore_errors=True)

    verdicts = {(row["problem_id"], row["protocol"]): row for row in found}
    bad = 0
    print(f"{'hostile candidate':46s} verdict")
    for name, attack in hostile.items():
        row = verdicts.get((name, "paper"))
        right = row is not None and row["functional_status"] in attack.statuses
        bad += not right
        said = "no verdict" if row is None else f"{row['functional_status']}: {' '.join(row['message'].split())[:110]}"
        print(f"{name:46s} {'' if right else 'WRONG: '}{said}")
    changed = [row for row in alone if word(verdicts.get((row["problem_id"], row["protocol"]))) != word(row)]
    for row in changed:
        after = verdicts.get((row["problem_id"], row["protocol"]))
        print(f"{row['problem_id']} {row['protocol']}: alone {word(row)}, among hostile ones {word(after)}")
        print(f"   {after['message'][:300] if after else ''}")
    finished = len(found) == 2 * (len(honest) + len(hostile))
    for name in (*hostile, *(row["id"] for row in honest)):
        if (name, "paper") not in verdicts or (name, "strict") not in verdicts:
            print(f"no verdict when it was cut off after {mixed_s:.0f} s: {name}")
    print(f"batch of {len(honest) + len(hostile)}: {'finished' if finished else 'NOT FINISHED'} in {mixed_s:.0f} s")
    print(f"honest alone: {len(honest)} in {alone_s:.0f} s; verdicts: {sorted({str(word(row)) for row in alone})}")
    print(f"hostile verdicts as they should be: {len(hostile) - bad} of {len(hostile)}")
    print(f"honest verdicts unchanged: {len(alone) - len(changed)} of {len(alone)} (two protocols each)")
    print(f"left over: {len(left)}")
    for line in left[:20]:
        print(f"   {line}")
    fine = finished and not bad and not changed and not left and all(row["status"] == "correct" for row in alone)
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
