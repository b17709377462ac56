"""Compilers under limits: what they said, what they cost, and that nothing of them is left."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from execution import FORBID_NAMESPACES, processes
from waiting import PATIENCE_S, wait_for

from dice.errors import HarnessError
from dice.kernels.builder import compiler
from dice.kernels.builder.compiler import Meter, ToolJail, ToolLimits, ToolRun, first_error
from dice.kernels.builder.outcome import OutOfLimits


@pytest.fixture(scope="module")
def jail() -> Iterator[ToolJail]:
    with contextlib.closing(ToolJail()) as made:
        made.show([sys.prefix, sys.base_prefix])
        yield made


@pytest.fixture
def shell(jail: ToolJail, tmp_path: Path) -> Callable[..., ToolRun]:
    """Runs a script in the folder of the test."""

    def run(script: str, limits: ToolLimits | None = None) -> ToolRun:
        return Meter(jail).run(["bash", "-c", script], tmp_path, limits or ToolLimits())

    return run


Shell = Callable[..., ToolRun]


def test_output_of_both_streams_and_the_exit_status(shell: Shell) -> None:
    done = shell("echo out; echo err >&2; exit 3")
    assert sorted(done.output.split()) == ["err", "out"]
    assert (done.returncode, done.ok, done.timed_out) == (3, False, False)
    assert shell("true").ok


def test_it_runs_in_the_work_folder_and_speaks_english(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("CPATH", "/usr/local/include")
    assert shell("echo $PWD $TMPDIR $LC_ALL $CPATH").output.split() == [*[str(tmp_path)] * 2, "C", "/usr/local/include"]


def sleeping(mark: str) -> bool:
    return any(mark in command for _, command in processes())


def test_all_layers_are_in_force_where_namespaces_are_allowed() -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("this machine allows no namespaces")
    with contextlib.closing(ToolJail()) as fresh:
        isolation, missing = fresh.layers()
    assert {"jail", "pid_namespace", "private_proc", "no_network", "own_user", "no_capabilities", "seccomp"} <= set(
        isolation
    )
    assert missing == []


def test_a_tool_that_takes_too_long_is_ended_with_all_that_it_started(shell: Shell) -> None:
    mark = f"{time.monotonic_ns()}.5"
    done = shell(f"sleep {mark} & wait", ToolLimits(timeout_s=1))
    assert done.timed_out
    assert not done.ok
    with pytest.raises(OutOfLimits) as refused:
        done.within_limits()
    assert refused.value.status == "timeout"
    wait_for(lambda: not sleeping(mark), "its child ends")


def test_what_a_tool_leaves_running_is_ended(shell: Shell) -> None:
    mark = f"{time.monotonic_ns()}.5"
    done = shell(f"exec 3>&1 >/dev/null 2>&1; sleep {mark} 3>&- & true")
    assert done.ok
    wait_for(lambda: not sleeping(mark), "its child ends")


def test_a_flood_of_output_is_cut_and_does_not_block_the_tool(shell: Shell, tmp_path: Path) -> None:
    done = shell("head -c 5000000 /dev/zero | tr '\\0' x; touch finished")
    assert done.ok
    assert len(done.output) == 1 << 20
    assert (tmp_path / "finished").exists()


def test_files_are_bounded(shell: Shell, tmp_path: Path) -> None:
    limits = ToolLimits(file_gib=1 / 1024)
    assert not shell("head -c 3000000 /dev/zero > big", limits).ok
    assert (tmp_path / "big").stat().st_size <= 1 << 20
    assert shell("head -c 1000000 /dev/zero > small", limits).ok


def test_memory_is_bounded_and_told_from_other_failures(jail: ToolJail, tmp_path: Path) -> None:
    (tmp_path / "wrong.cpp").write_text("#error 'not memory'\n")
    plain = jail.run(["g++", "-c", "wrong.cpp"], tmp_path, ToolLimits())
    assert not plain.ok
    assert not plain.out_of_memory
    take = [sys.executable, "-c", "x = bytearray(2 << 30)"]
    assert jail.run(take, tmp_path, ToolLimits(memory_gib=16)).ok
    assert "MemoryError" in jail.run(take, tmp_path, ToolLimits(memory_gib=1)).output
    (tmp_path / "many.cpp").write_text("".join(f"int a{i};" for i in range(200_000)))
    command = ["g++", "-fsyntax-only", "many.cpp"]
    assert jail.run(command, tmp_path, ToolLimits()).ok
    done = jail.run(command, tmp_path, ToolLimits(memory_gib=0.15))  # it starts, and cannot end
    assert not done.ok
    assert done.out_of_memory


@pytest.mark.parametrize(
    "words",
    [
        "virtual memory exhausted: Cannot allocate memory",
        "cc1plus: out of memory allocating 65536 bytes after a total of 9 bytes",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "LLVM ERROR: out of memory\nAllocation failed: memory allocation failure",
    ],
)
def test_what_compilers_say_when_their_memory_ends(words: str) -> None:
    done = ToolRun(1, words, 1.0, 1.0)
    with pytest.raises(OutOfLimits) as refused:
        done.within_limits()
    assert refused.value.status == "out_of_memory"
    assert ToolRun(0, words, 1.0, 1.0).within_limits().ok  # a source may say it too
    assert not ToolRun(1, "error: expected ';'", 1.0, 1.0).within_limits().ok


@pytest.mark.parametrize("signal", ["KILL", "TERM"])
def test_a_tool_that_is_killed_is_no_fault_of_the_source(shell: Shell, signal: str) -> None:
    with pytest.raises(HarnessError, match="killed from outside"):
        shell(f"kill -{signal} $$")


@pytest.mark.parametrize(
    "words",
    [
        "g++: fatal error: Killed signal terminated program cc1plus",
        "x.o: No space left on device",
        "Disk quota exceeded",
        "sh: 1: g++: not found",
    ],
)
def test_a_source_cannot_blame_the_machine(shell: Shell, words: str) -> None:
    """A text can have a compiler say anything."""
    done = shell(f"echo '{words}'; exit 1")
    assert (done.returncode, done.output) == (1, f"{words}\n")


def test_a_failure_on_a_full_disk_is_the_machines(shell: Shell) -> None:
    assert shell("true", ToolLimits(room_gib=1e9)).ok
    with pytest.raises(HarnessError, match="free some"):
        shell("exit 1", ToolLimits(room_gib=1e9))


def test_a_full_disk_is_told_by_blocks_and_by_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def room(blocks: int, files: int, files_left: int) -> None:
        values = (4096, 4096, 1 << 30, blocks, blocks, files, files_left, files_left, 0, 255)
        monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(values))

    for blocks, files, files_left, full in (
        (1 << 20, 100, 1, False),
        (1 << 20, 0, 0, False),  # a file system without a table of files
        (1 << 20, 100, 0, True),
        ((1 << 18) - 1, 100, 1, True),
        (1 << 18, 100, 1, False),
    ):
        room(blocks, files, files_left)
        assert compiler._is_full(tmp_path, 1.0) == full


def killing(monkeypatch: pytest.MonkeyPatch, *counts: int) -> None:
    """The kernel's count of processes that it killed, each time that it is asked for."""
    left = iter(counts)
    monkeypatch.setattr(compiler, "kernel_kills", lambda: next(left))


def test_what_the_kernel_killed_is_run_again(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    killing(monkeypatch, 5, 6, 6, 6)
    assert shell("[ -e tried ] || { touch tried; exit 1; }").ok
    killing(monkeypatch, 5, 6, 6, 6)
    done = shell("exit 1")
    assert not done.ok
    assert not done.out_of_memory  # another process of the machine was killed the first time


def test_what_the_kernel_kills_twice_needs_too_much_memory(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    killing(monkeypatch, 5, 6, 6, 7)
    done = shell("kill -KILL $$")
    with pytest.raises(OutOfLimits) as refused:
        done.within_limits()
    assert refused.value.status == "out_of_memory"


def test_a_program_that_is_not_there_is_a_fault_of_the_machine(jail: ToolJail, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"no-such-compiler could not run: FileNotFoundError"):
        jail.run(["no-such-compiler"], tmp_path, ToolLimits())


def test_a_tool_that_dies_by_itself_is_the_sources_fault(shell: Shell) -> None:
    """A compiler that crashes on a source, or runs into its limit of memory."""
    assert shell("kill -SEGV $$").returncode == -11
    assert shell("echo 'out of memory allocating 1 bytes'; kill -KILL $$").out_of_memory


def test_a_meter_adds_the_processor_time_of_all_children(jail: ToolJail, tmp_path: Path) -> None:
    meter = Meter(jail)
    burn = "import os\nwhile os.times().user < 0.2: pass"
    first = meter.run([sys.executable, "-c", burn], tmp_path, ToolLimits())
    both = meter.run(["bash", "-c", f"{sys.executable} -c '{burn}'; sleep 0.1"], tmp_path, ToolLimits())
    assert first.cpu_seconds >= 0.2
    assert both.cpu_seconds >= 0.2
    assert meter.cpu_seconds == pytest.approx(first.cpu_seconds + both.cpu_seconds)


def test_nothing_runs_beyond_the_deadline_of_its_build(jail: ToolJail, tmp_path: Path) -> None:
    done = Meter(jail).run(["sleep", "1000"], tmp_path, ToolLimits(), deadline=time.monotonic() - 1)
    assert done.timed_out
    assert Meter(jail).run(["true"], tmp_path, ToolLimits(timeout_s=1000), deadline=time.monotonic() + 1000).ok


def test_no_core_is_left(shell: Shell, tmp_path: Path) -> None:
    shell("kill -ABRT $$")
    assert os.listdir(tmp_path) == []


WITHOUT_NAMESPACES = f"""
import contextlib, json, sys
from pathlib import Path
from dice.kernels.builder.compiler import ToolJail, ToolLimits
{FORBID_NAMESPACES}
work = Path(sys.argv[1])
with contextlib.closing(ToolJail()) as jail:
    done = jail.run(["g++", "-c", "unit.cpp", "-o", "unit.o"], work, ToolLimits())
    daemon = jail.run(["bash", "-c", f"sleep {{sys.argv[2]}} >/dev/null 2>&1 & true"], work, ToolLimits())
    print(json.dumps([done.ok, daemon.ok, jail.isolation, jail.missing]))
"""


def test_a_machine_without_namespaces_compiles_and_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "unit.cpp").write_text("#include <cmath>\n")
    mark = f"{time.monotonic_ns()}.5"
    command = [sys.executable, "-c", WITHOUT_NAMESPACES, str(tmp_path), mark]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    compiled, ran, isolation, missing = json.loads(done.stdout)
    assert compiled
    assert ran
    assert {"rlimit_as", "rlimit_fsize", "no_new_privileges", "seccomp"} <= set(isolation)
    assert {"no_network", "jail", "pid_namespace", "own_user"} <= {layer.split(" ")[0] for layer in missing}
    assert not sleeping(mark)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("In file included from a.h:1:\na.h:2:1: error: 'x' was not declared\nmore", "a.h:2:1: error: 'x' was not declared"),
        ("cc1plus: fatal error: a.h: No such file", "cc1plus: fatal error: a.h: No such file"),
        ("one\n\ntwo\n", "two"),
        ("", "no message"),
    ],
)  # fmt: skip
def test_the_first_error_of_a_compiler_stands_for_all(output: str, expected: str) -> None:
    assert first_error(output) == expected
