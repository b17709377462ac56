"""Candidates that attack the machine, the verifier or each other: the batch goes on, and nothing is left over."""

from __future__ import annotations

import dataclasses
import os
import socket
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from execution import HONEST, NoBuilder, honest_with, job, processes
from waiting import is_gone, wait_for

from dice.kernels.candidate.process import candidate_server
from dice.kernels.grader.executor import Executor
from dice.kernels.records.job import Judging, Limits
from dice.kernels.records.verdict import Verdict
from dice.kernels.sandbox import process_tree
from dice.kernels.sandbox.fork_server import ForkServer

LIMITS = Limits(memory_gib=1, file_gib=0.05, processes=64)
SECRET = "the-expected-answer-is-kept-here"


@pytest.fixture(scope="module")
def executor(fork_server: ForkServer) -> Iterator[Executor]:
    with Executor(fork_server, NoBuilder(), "cpu", limits=LIMITS, judging=Judging(correctness_trials=2)) as value:
        yield value


def verdict_of(executor: Executor, code: str) -> Verdict:
    (verdict,) = executor.verify(job(code))
    return verdict


@pytest.fixture(autouse=True)
def _nothing_left(fork_server: ForkServer) -> Iterator[None]:
    before = {pid for pid, _ in processes()}
    yield
    # Of this fork_server: others may run tests, or a verifier, on the same machine.
    left = {(pid, command) for pid, command in processes() if pid not in before and fork_server.directory in command}
    assert not left
    assert not [name for name in os.listdir("/dev/shm") if name == "mine" or name.isdigit()]


def test_the_honest_candidate_is_correct_before_and_after_an_attack(executor: Executor) -> None:
    assert verdict_of(executor, HONEST).functional_status == "correct"
    assert verdict_of(executor, honest_with(import_="import os; os._exit(0)")).functional_status == "runtime_error"
    assert verdict_of(executor, HONEST).functional_status == "correct"


ENDLESS_C = """
import ctypes
ctypes.CDLL(None).pause()
"""

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

CLOSE_ALL = """
import os
os.closerange(0, 1000)
"""

KILL_ALL = """
import ctypes, os
for pid in (os.getppid(), 1, -1):
    ctypes.CDLL(None).kill(pid, 9)
"""

RECURSION = """
import sys
sys.setrecursionlimit(10**9)
def f():
    f()
f()
"""

FIND_CHANNEL = """
import os, stat
fd = next(n for n in range(3, 100) if os.path.exists(f"/proc/self/fd/{n}") and stat.S_ISSOCK(os.fstat(n).st_mode))
"""
HALF_A_MESSAGE = FIND_CHANNEL + "os.write(fd, b'\\0\\0\\1\\0half')\nwhile True: pass"

STOP = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"

DEAF = """
import signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    pass
"""


@pytest.mark.parametrize(
    ("lines", "statuses"),
    [
        pytest.param("while True:\n    pass", {"timeout"}, id="Python loop"),
        pytest.param(ENDLESS_C, {"timeout"}, id="asleep in C"),
        pytest.param(DEAF, {"timeout"}, id="deaf to every signal"),
        pytest.param(STOP, {"timeout"}, id="stops itself"),
        pytest.param(HALF_A_MESSAGE, {"timeout"}, id="half a message"),
        # It ends when the memory does, if it has the time: ten million frames take half a minute.
        pytest.param(RECURSION, {"timeout", "runtime_error", "out_of_memory", "import_error"}, id="recursion"),
    ],
)
@pytest.mark.parametrize("where", ["import_", "forward"])
def test_what_never_ends_is_ended(fork_server: ForkServer, where: str, lines: str, statuses: set[str]) -> None:
    limits = dataclasses.replace(LIMITS, **{"import_timeout_s" if where == "import_" else "forward_timeout_s": 1})
    with Executor(fork_server, NoBuilder(), "cpu", limits=limits, judging=Judging(correctness_trials=1)) as short:
        verdict = verdict_of(short, honest_with(**{where: lines}))
    assert verdict.functional_status in statuses, verdict.message


@pytest.mark.parametrize(
    ("lines", "statuses"),
    [
        pytest.param(FORK_BOMB, {"out_of_memory", "runtime_error"}, id="fork bomb"),
        pytest.param("import os; os._exit(0)", {"runtime_error"}, id="silent exit"),
        pytest.param("import sys; sys.exit(0)", {"runtime_error"}, id="polite exit"),
        pytest.param(KILL_ALL, {"correct"}, id="kills all"),
        pytest.param("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", {"runtime_error"}, id="segfault"),
        pytest.param("import ctypes; ctypes.CDLL(None).abort()", {"runtime_error"}, id="abort"),
        pytest.param("x = bytearray(100 << 30)", {"out_of_memory"}, id="100 GiB at once"),
        pytest.param("import torch; x = torch.ones(100 << 28)", {"out_of_memory"}, id="100 GiB tensor"),
        pytest.param("x = [bytearray(1 << 24) for _ in range(6400)]", {"out_of_memory"}, id="100 GiB bit by bit"),
        pytest.param(CLOSE_ALL, {"runtime_error"}, id="closes every descriptor"),
        pytest.param("raise KeyboardInterrupt", {"runtime_error", "import_error"}, id="KeyboardInterrupt"),
    ],
)
@pytest.mark.parametrize("where", ["import_", "forward"])
def test_what_ends_a_candidate_is_named_and_stays_with_it(
    executor: Executor, where: str, lines: str, statuses: set[str]
) -> None:
    code = honest_with(**{where: lines})
    verdict = verdict_of(executor, code)
    allowed = statuses | ({"import_error"} if where == "import_" and "runtime_error" in statuses else set())
    assert verdict.functional_status in allowed, verdict.message


def test_a_fork_bomb_is_counted_before_it_is_weighed(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    weighed = []
    weigh = process_tree.memory_bytes
    monkeypatch.setattr(
        process_tree, "memory_bytes", lambda pids, limit: weighed.append(len(pids)) or weigh(pids, limit)
    )
    verdict = verdict_of(executor, honest_with(import_=FORK_BOMB))
    assert verdict.functional_status == "runtime_error"
    assert "processes at one time" in verdict.message
    assert max(weighed, default=0) <= LIMITS.processes // 2


def test_a_memory_hog_of_many_processes_is_ended(executor: Executor) -> None:
    code = honest_with(
        import_="""
import os, signal
for _ in range(8):
    if os.fork() == 0:
        x = bytearray(300 << 20)
        for i in range(0, len(x), 4096):
            x[i] = 1
        signal.pause()
signal.pause()
"""
    )
    verdict = verdict_of(executor, code)
    assert verdict.functional_status == "out_of_memory", verdict.message


@pytest.mark.parametrize(
    "take",
    [
        "fd = os.memfd_create('x')\nos.write(fd, b'x' * (600 << 20))",
        "kept.append(mmap.mmap(-1, 400 << 20))\nkept[-1].write(b'x' * (400 << 20))",
        "f = open(f'/dev/shm/{i}', 'wb')\nf.write(b'x' * (600 << 20))\nf.flush()",
    ],
    ids=["memfd", "shared mapping", "shm file"],
)
def test_memory_that_is_no_processs_own_is_bounded_too(executor: Executor, take: str) -> None:
    body = "".join(f"    {line}\n" for line in take.split("\n"))
    code = honest_with(
        import_=f"import mmap, os, time\nkept = []\nfor i in range(6):\n{body}    kept.append(locals())\n"
    )
    verdict = verdict_of(executor, code)
    assert verdict.functional_status in ("out_of_memory", "import_error"), verdict.message


def test_some_children_are_no_fork_bomb(executor: Executor) -> None:
    children = """
import os, time
read, write = os.pipe()
for _ in range(20):
    if not os.fork():
        os.close(write)
        os.read(read, 1)
        os._exit(0)
time.sleep(0.5)  # all of them are there, and the grader looks every 0.1 s
os.close(write)
for _ in range(20):
    os.wait()
"""
    assert verdict_of(executor, honest_with(import_=children)).functional_status == "correct"


def test_a_daemon_does_not_outlive_its_candidate(executor: Executor) -> None:
    assert verdict_of(executor, honest_with(forward=DAEMON)).functional_status == "correct"


def test_a_flood_of_output_is_swallowed(executor: Executor) -> None:
    code = honest_with(forward="import os\nfor _ in range(300):\n    os.write(1, b'x' * 1_000_000)")
    assert verdict_of(executor, code).functional_status == "correct"


def test_the_last_words_of_a_crash_are_reported(executor: Executor) -> None:
    code = honest_with(forward="import os, sys\nprint('device on fire', file=sys.stderr, flush=True)\nos._exit(7)")
    verdict = verdict_of(executor, code)
    assert verdict.functional_status == "runtime_error"
    assert "exit code 7" in verdict.message
    assert "device on fire" in verdict.message


def test_the_disk_cannot_be_filled(executor: Executor) -> None:
    code = honest_with(
        import_="""
import os
written = 0
try:
    for i in range(1000):
        with open(f"fill{i}", "wb") as f:
            written += f.write(b"x" * (1 << 20))
except OSError:
    pass
assert written <= 60 << 20, written
for i in range(1000):
    if os.path.exists(f"fill{i}"):
        os.remove(f"fill{i}")
"""
    )
    verdict = verdict_of(executor, code)
    assert verdict.functional_status == "correct", verdict.message


def test_there_is_no_network(executor: Executor) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        port = server.getsockname()[1]
        code = honest_with(
            import_=f"""
import socket
for address in (("127.0.0.1", {port}), ("8.8.8.8", 53)):
    try:
        socket.create_connection(address, timeout=1)
    except OSError:
        continue
    raise SystemExit("reached the network")
"""
        )
        verdict = verdict_of(executor, code)
    assert verdict.functional_status == "correct", verdict.message


def test_nothing_outside_the_scratch_folder_can_be_written_or_found(executor: Executor, tmp_path: Path) -> None:
    secret = tmp_path / "expected.txt"
    secret.write_text(SECRET)
    mine = f"/tmp/mine_{uuid.uuid4().hex}"
    code = honest_with(
        import_=f"""
import os, torch
for path in ({str(secret)!r}, "/etc/shadow", {str(Path.home() / ".bashrc")!r}, {str(Path(__file__))!r}):
    assert not os.path.exists(path), path
for folder in ("/", "/usr", "/usr/lib", os.path.dirname(torch.__file__), "/dev", "/proc/sys/kernel", "/sys", "/etc"):
    try:
        open(os.path.join(folder, "dice_was_here"), "w")
    except OSError:
        continue
    raise SystemExit(f"wrote into {{folder}}")
open("mine", "w").write("x")
open({mine!r}, "w").write("x")
open("/dev/shm/mine", "w").write("x")
"""
    )
    verdict = verdict_of(executor, code)
    assert verdict.functional_status == "correct", verdict.message
    assert not os.path.exists(mine)


def test_what_is_shown_below_tmp_is_read_only_in_a_tmp_of_its_own() -> None:
    """As for an interpreter that lives below /tmp."""
    with tempfile.TemporaryDirectory(dir="/tmp") as shown:
        os.chmod(shown, 0o755)  # the candidate is another user
        Path(shown, "inside").write_text("x")
        code = honest_with(
            import_=f"""
import os
assert open({shown + "/inside"!r}).read() == "x"
open({shown + "_mine"!r}, "w").write("x")
try:
    open({shown + "/mine"!r}, "w")
except OSError:
    pass
else:
    raise SystemExit("wrote into what is shown")
"""
        )
        with candidate_server(visible=[shown]) as fresh, Executor(fresh, NoBuilder(), "cpu", limits=LIMITS) as other:
            verdict = verdict_of(other, code)
        assert verdict.functional_status == "correct", verdict.message
        assert os.listdir(shown) == ["inside"]
        assert not os.path.exists(shown + "_mine")


def test_other_processes_are_out_of_sight_and_reach(executor: Executor) -> None:
    code = honest_with(
        import_=f"""
import ctypes, os
pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
assert set(pids) <= {{1, os.getpid()}}, pids
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH = 16
assert libc.ptrace(PTRACE_ATTACH, 1, 0, 0) == -1
assert libc.kill({os.getpid()}, 0) == -1
for path in ("/proc/1/mem", "/proc/1/environ", "/proc/1/fd/0"):
    try:
        open(path, "rb").read(1)
    except OSError:
        continue
    raise SystemExit(path)
assert libc.unshare(0x10000000) == -1
assert libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == -1
assert libc.setuid(0) == -1 or os.getuid() == 0 and libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == -1
"""
    )
    verdict = verdict_of(executor, code)
    assert verdict.functional_status == "correct", verdict.message


def test_the_environment_holds_no_secrets(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)
    with candidate_server() as fresh, Executor(fresh, NoBuilder(), "cpu", limits=LIMITS) as other:
        code = honest_with(
            import_=f"""
import os
assert not any({SECRET!r} in value for value in os.environ.values())
for pid in os.listdir("/proc"):
    if pid.isdigit():
        try:
            assert {SECRET.encode()!r} not in open(f"/proc/{{pid}}/environ", "rb").read()
        except OSError:
            pass
"""
        )
        verdict = verdict_of(other, code)
    assert verdict.functional_status == "correct", verdict.message


FORGERIES = {
    "noise": "os.write(fd, bytes(range(64, 128)))",
    "a huge length": "os.write(fd, b'\\xff\\xff\\xff\\xff')",
    "not an object": "os.write(fd, b'\\x00\\x00\\x00\\x02[]')",
    "deep nesting": "data = b'[' * 100000; os.write(fd, len(data).to_bytes(4, 'big') + data)",
    "a forged success": """
import json
data = json.dumps({"ok": True, "header": {"kind": "plain", "value": None}, "bytes": 0, "facts": {}}).encode()
os.write(fd, len(data).to_bytes(4, "big") + data)
""",
    "an offer of a petabyte": """
import json
data = json.dumps({"ok": True, "header": {"kind": "tensor", "dtype": "uint8", "shape": [1 << 40], "device": "cpu",
    "offset": 0, "bytes": 1 << 40}, "bytes": 1 << 40, "facts": {}}).encode()
os.write(fd, len(data).to_bytes(4, "big") + data)
""",
    "an offer that lies about its size": """
import json
data = json.dumps({"ok": True, "header": {"kind": "tensor", "dtype": "float32", "shape": [16, 64], "device": "cpu",
    "offset": 1 << 20, "bytes": 4096}, "bytes": 4096, "facts": {}}).encode()
os.write(fd, len(data).to_bytes(4, "big") + data)
""",
    "a bad build request": """
import json
data = json.dumps({"op": "build", "request": {"kind": "load_inline", "name": 7, "evil": True}}).encode()
os.write(fd, len(data).to_bytes(4, "big") + data)
""",
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES.keys())
def test_forged_messages_gain_nothing(executor: Executor, forgery: str) -> None:
    """The answer is wrong on purpose: no message may turn it into a right one."""
    code = honest_with(forward=FIND_CHANNEL + forgery).replace("torch.relu(self.linear(x))", "torch.zeros(16, 64)")
    verdict = verdict_of(executor, code)
    allowed = ("runtime_error", "wrong_value", "wrong_dtype", "wrong_shape")
    assert verdict.functional_status in allowed, verdict.message


def test_shared_buffers_cannot_be_resized_under_the_grader(executor: Executor) -> None:
    code = honest_with(
        forward="""
import gc, os
for name in os.listdir("/proc/self/fd"):
    try:
        if "memfd" in os.readlink(f"/proc/self/fd/{name}"):
            os.ftruncate(int(name), 0)
            raise SystemExit("resized a shared buffer")
    except (OSError, FileNotFoundError):
        pass
"""
    )
    # The buffer is only open while values cross, so a thread of the candidate's races for it.
    race = honest_with(
        import_="""
import os, threading
def shrink():
    while True:
        for name in os.listdir("/proc/self/fd"):
            try:
                if "memfd" in os.readlink(f"/proc/self/fd/{name}"):
                    os.ftruncate(int(name), 0)
                    os._exit(5)
            except OSError:
                pass
threading.Thread(target=shrink, daemon=True).start()
"""
    )
    assert verdict_of(executor, code).functional_status == "correct"
    verdict = verdict_of(executor, race)
    assert verdict.functional_status == "correct", verdict.message


def test_patched_clocks_and_comparisons_change_nothing(executor: Executor) -> None:
    patch = """
import time
torch.allclose = lambda *a, **k: True
torch.isclose = lambda *a, **k: torch.ones(1, dtype=torch.bool)
torch.cuda.synchronize = lambda *a, **k: None
torch.equal = lambda *a, **k: True
time.perf_counter = time.monotonic = lambda: 0.0
"""
    wrong = honest_with(import_=patch).replace("torch.relu(self.linear(x))", "self.linear(x)")
    assert verdict_of(executor, wrong).functional_status == "wrong_value"
    assert verdict_of(executor, honest_with(import_=patch)).functional_status == "correct"
    assert (
        verdict_of(executor, HONEST.replace("torch.relu(self.linear(x))", "self.linear(x)")).functional_status
        == "wrong_value"
    )


def test_no_expected_value_is_in_the_candidates_memory(executor: Executor) -> None:
    """Looks through all tensors that the collector knows for one that has the answer's shape and could be it."""
    code = honest_with(
        forward="""
import gc
if not hasattr(self, "seen"):  # later, its own earlier outputs are alive
    self.seen = [
        t for t in gc.get_objects()
        if isinstance(t, torch.Tensor) and t.shape == (16, 64) and t.data_ptr() != x.data_ptr()
    ]
    assert not self.seen, len(self.seen)
"""
    )
    with _single_trial(executor) as single:
        verdict = verdict_of(single, code)
    assert verdict.functional_status == "correct", verdict.message


def _single_trial(executor: Executor) -> Executor:
    return Executor(
        executor._place.fork_server, NoBuilder(), "cpu", limits=LIMITS, judging=Judging(correctness_trials=1)
    )


DELETED = "import shutil, os\nos.chdir('/')\nshutil.rmtree('/scratch', ignore_errors=True)\n"


def test_a_deleted_scratch_folder_and_a_changed_directory_hurt_only_the_candidate(executor: Executor) -> None:
    deleted = verdict_of(executor, honest_with(import_=DELETED))
    assert deleted.functional_status == "correct", deleted.message
    assert verdict_of(executor, HONEST).functional_status == "correct"


def test_to_delete_the_scratch_folder_does_not_lead_into_what_is_shown_below_tmp() -> None:
    """As for an interpreter that lives below /tmp: to try its fifty thousand files one by one takes seconds."""
    with tempfile.TemporaryDirectory(dir="/tmp") as shown:
        os.chmod(shown, 0o755)
        Path(shown, "inside").write_text("x")
        name = os.path.basename(shown)
        looks = f"assert {name!r} in os.listdir('/scratch/tmp') and not os.listdir('/scratch/tmp/{name}')\n"
        still = f"assert open({shown + '/inside'!r}).read() == 'x'"
        code = honest_with(import_=f"import os\n{looks}{DELETED}{still}")
        with candidate_server(visible=[shown]) as fresh, Executor(fresh, NoBuilder(), "cpu", limits=LIMITS) as other:
            verdict = verdict_of(other, code)
        assert verdict.functional_status == "correct", verdict.message


def test_neighbours_are_unharmed(fork_server: ForkServer) -> None:
    """Three executors at work; attacks in one of them do not change the verdicts of the others."""
    attacks = [
        honest_with(import_=FORK_BOMB),
        honest_with(forward=DEAF),
        honest_with(import_="x = bytearray(100 << 30)"),
    ]
    honest: list[Verdict] = []
    stop = threading.Event()

    def neighbour() -> None:
        with Executor(fork_server, NoBuilder(), "cpu", limits=Limits(), judging=Judging(correctness_trials=1)) as other:
            while not stop.is_set():
                honest.append(verdict_of(other, HONEST))

    threads = [threading.Thread(target=neighbour) for _ in range(2)]
    for thread in threads:
        thread.start()
    limits = Limits(forward_timeout_s=1, memory_gib=2, processes=64)
    with Executor(fork_server, NoBuilder(), "cpu", limits=limits) as executor:
        for attack in attacks:
            assert verdict_of(executor, attack).functional_status != "correct"
    stop.set()
    for thread in threads:
        thread.join()
    assert honest
    assert [one.message for one in honest if one.functional_status != "correct"] == []


def test_a_killed_fork_server_is_replaced(executor: Executor) -> None:
    with candidate_server() as fresh, Executor(fresh, NoBuilder(), "cpu", limits=LIMITS) as other:
        assert verdict_of(other, HONEST).functional_status == "correct"
        assert fresh._process is not None
        os.kill(fresh._process.pid, 9)
        wait_for(lambda: fresh._process is None or is_gone(fresh._process.pid), "the fork server ends")
        assert verdict_of(other, HONEST).functional_status == "correct"
