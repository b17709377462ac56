"""Layers of isolation: all of them where the machine allows it, and honest words about those it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from execution import FORBID_NAMESPACES, HONEST, PROBLEM, NoBuilder, honest_with, job, processes
from waiting import PATIENCE_S, wait_for

from dice.kernels.candidate.process import candidate_server
from dice.kernels.grader.executor import Executor
from dice.kernels.records.job import Judging, Limits
from dice.kernels.sandbox import linux, process_tree, seccomp
from dice.kernels.sandbox.fork_server import ForkServer
from dice.kernels.sandbox.isolation import Layers, own_uid
from dice.kernels.sandbox.jail import in_order


def namespaces_are_allowed() -> bool:
    """Whether this machine lets this user make namespaces."""
    pid = os.fork()
    if pid == 0:
        try:
            linux.unshare((0 if os.geteuid() == 0 else linux.CLONE_NEWUSER) | linux.CLONE_NEWPID | linux.CLONE_NEWNS)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


ALWAYS = {"rlimit_fsize", "rlimit_nproc", "rlimit_data", "no_new_privileges", "no_capabilities", "wall_clock_limits"}
WITH_NAMESPACES = {"jail", "pid_namespace", "no_network", "ipc_namespace", "readonly_root", "scratch_quota"}


@pytest.fixture
def executor(fork_server: ForkServer) -> Iterator[Executor]:
    with Executor(fork_server, NoBuilder(), "cpu", judging=Judging(correctness_trials=1)) as value:
        yield value


def test_all_layers_are_in_force_where_namespaces_are_allowed(executor: Executor) -> None:
    if not namespaces_are_allowed():
        pytest.skip("this machine allows no namespaces")
    (verdict,) = executor.verify(job(HONEST))
    assert set(verdict.host.isolation) >= ALWAYS | WITH_NAMESPACES
    assert not any("refused" in note for note in verdict.notes)


def test_the_system_is_shown_whole(executor: Executor) -> None:
    """Links such as /bin must not narrow what they lead into: libraries below /usr/local are opened by name."""
    if not namespaces_are_allowed():
        pytest.skip("this machine allows no namespaces")
    look = f"import os\nassert not set({os.listdir('/usr')!r}) - set(os.listdir('/usr')), os.listdir('/usr')\n"
    (verdict,) = executor.verify(job(honest_with(import_=look + "assert not os.path.exists('/home')")))
    assert verdict.functional_status == "correct", verdict.message


def test_folders_are_shown_before_the_links_into_them(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    (root / "usr" / "bin").mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    (root / "elsewhere").mkdir()
    (root / "far").symlink_to("elsewhere")
    given = [str(root / name) for name in ("bin", "usr", "usr/bin", "far")]
    assert in_order(given) == [str(root / name) for name in ("elsewhere", "usr", "bin", "far")]


def test_folders_may_be_shown_while_the_fork_server_starts(tmp_path: Path) -> None:
    if not namespaces_are_allowed():
        pytest.skip("this machine allows no namespaces")
    for name in ("shown", "hidden"):
        (tmp_path / name).mkdir(mode=0o755)
    with contextlib.closing(candidate_server()) as fork_server:
        fork_server.begin()
        fork_server.show([tmp_path / "shown"])
        fork_server.start()
        look = f"import os\nassert os.path.isdir({str(tmp_path / 'shown')!r})\n"
        look += f"assert not os.path.exists({str(tmp_path / 'hidden')!r})"
        with Executor(fork_server, NoBuilder(), "cpu", judging=Judging(correctness_trials=1)) as executor:
            (verdict,) = executor.verify(job(honest_with(import_=look)))
    assert verdict.functional_status == "correct", verdict.message


def test_a_fork_server_that_was_only_begun_leaves_nothing() -> None:
    fork_server = candidate_server()
    fork_server.begin()
    begun = fork_server._begun
    fork_server.close()
    assert begun is not None
    assert begun.poll() is not None
    assert not os.path.exists(fork_server.directory)


WITHOUT_NAMESPACES = f"""
import json, sys
sys.path.insert(0, sys.argv[1])
from execution import NoBuilder, job
from dice.kernels.grader.executor import Executor
from dice.kernels.records.job import Judging
from dice.kernels.candidate.process import candidate_server
{FORBID_NAMESPACES}
judging = Judging(correctness_trials=1)
with candidate_server() as fork_server, Executor(fork_server, NoBuilder(), "cpu", judging=judging) as executor:
    for code in json.load(sys.stdin):
        (verdict,) = executor.verify(job(code))
        print(json.dumps([verdict.functional_status, verdict.message, verdict.host.isolation, verdict.notes]))
"""

DAEMON = """
import os
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execlp("sleep", "dice-test-daemon", "300")
    os._exit(0)
os.close(write)
os.read(read, 1)  # ends when the daemon has become the other program, which closes its end
"""

NETWORK = """
import socket
try:
    socket.socket(socket.AF_INET, socket.SOCK_STREAM)
except PermissionError:
    pass
else:
    raise SystemExit("made an internet socket")
"""


def test_a_machine_without_namespaces_degrades_layer_by_layer() -> None:
    """A container's usual filter, imitated: no unshare, no mount. Limits, user, filter and clean-up still hold."""
    codes = [
        HONEST,
        honest_with(forward=DAEMON),
        honest_with(import_=NETWORK),
        honest_with(import_="x = bytearray(100 << 30)"),
    ]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NAMESPACES, str(Path(__file__).parents[1])],
        input=json.dumps(codes),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer[0] for answer in answers] == ["correct", "correct", "correct", "out_of_memory"], answers
    for _, _, isolation, notes in answers:
        assert set(isolation) >= ALWAYS
        assert not WITH_NAMESPACES & set(isolation)
        assert any("pid_namespace" in note and "jail" in note for note in notes)
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "dice-test-daemon" not in processes


def test_a_killed_grader_leaves_nothing(tmp_path: Path) -> None:
    """kill -9 of the process that owns the fork server, in the middle of an endless candidate."""
    name = f"end-{uuid.uuid4().hex[:8]}"
    endless = f"open('/proc/self/comm', 'w').write({name!r})\nwhile True: pass"
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from execution import NoBuilder, honest_with, job
from dice.kernels.grader.executor import Executor
from dice.kernels.candidate.process import candidate_server
with candidate_server() as fork_server, Executor(fork_server, NoBuilder(), "cpu") as executor:
    print(fork_server.directory, flush=True)
    executor.verify(job(honest_with(forward={endless!r})))
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder = process.stdout.readline().strip()

    def is_in_forward() -> bool:
        assert process.poll() is None
        return name in process_tree.names([pid for pid, _ in processes()])

    wait_for(is_in_forward, "the candidate is in its forward")
    process.kill()
    process.wait()
    process.stdout.close()
    wait_for(lambda: not any(folder in command for _, command in processes()), "fork server and candidate end")
    wait_for(lambda: not Path(folder).exists(), "the folder is removed")


def test_layers_name_what_is_refused() -> None:
    layers = Layers()

    def refuse() -> None:
        raise PermissionError(1, "Operation not permitted")

    assert layers.attempt("easy", lambda: None)
    assert not layers.attempt("hard", refuse)
    assert layers.names == ["easy"]
    assert layers.missing == ["hard (Operation not permitted)"]


def test_users_of_candidates_are_unprivileged_and_distinct() -> None:
    if os.geteuid() != 0 or int(Path("/proc/self/uid_map").read_text().split()[2]) < 65536:
        pytest.skip("there is only one user here")
    users = {own_uid(4026532000 + index) for index in range(100)}
    assert len(users) == 100
    assert min(users) > 60_000


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_well_formed(machine: str) -> None:
    """Every jump stays inside the program and every path ends in a return: what the kernel would check."""
    program = seccomp.filter_program(allow_internet_sockets=False, machine=machine)
    assert len(program) % 8 == 0
    steps = [program[index : index + 8] for index in range(0, len(program), 8)]
    for index, step in enumerate(steps):
        code, if_true, if_false = int.from_bytes(step[:2], "little"), step[2], step[3]
        if code & 7 == 5:
            assert index + 1 + max(if_true, if_false) < len(steps)
    assert int.from_bytes(steps[-1][:2], "little") == 6


def test_an_unknown_architecture_has_no_filter() -> None:
    with pytest.raises(OSError, match="riscv64"):
        seccomp.filter_program(allow_internet_sockets=True, machine="riscv64")


def test_a_tight_file_limit_is_the_candidates(fork_server: ForkServer) -> None:
    limits = Limits(file_gib=0.01)
    with Executor(fork_server, NoBuilder(), "cpu", limits=limits, judging=Judging(correctness_trials=1)) as executor:
        (verdict,) = executor.verify(job(honest_with(import_="open('big', 'wb').write(b'x' * (20 << 20))")))
    assert verdict.functional_status == "import_error"
    assert "File too large" in verdict.message or "No space" in verdict.message


def test_root_of_a_user_namespace_verifies(tmp_path: Path) -> None:
    """Such a root, of a container say, may not enter its own PID namespace again, which belongs to the outer user."""
    if subprocess.run(["unshare", "-r", "true"], capture_output=True).returncode:
        pytest.skip("this machine allows no user namespaces")
    row = {"problem_id": "level1/1_small", "problem_code": PROBLEM, "code": HONEST}
    (tmp_path / "c.jsonl").write_text(json.dumps(row) + "\n")
    command = [
        "unshare",
        "-r",
        sys.executable,
        "-m",
        "dice.cli",
        "verify",
        "--backend",
        "cpu",
        "--no-timing",
        "--quiet",
    ]
    command += ["--candidates", str(tmp_path / "c.jsonl"), "--out", str(tmp_path / "v.jsonl"), "--trials", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    verdict = json.loads((tmp_path / "v.jsonl").read_text())
    assert verdict["functional_status"] == "correct", done.stderr[-500:] + verdict["message"]
    assert verdict["host"]["isolation"], verdict["notes"]
