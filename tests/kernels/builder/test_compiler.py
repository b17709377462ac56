"""Compilers under limits: what they said, what they cost, and that nothing of them is left."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from waiting import is_gone, wait_for

from dice.errors import HarnessError
from dice.kernels.builder.compiler import Meter, ToolLimits, ToolRun, raise_out_of_limits, run_tool
from dice.kernels.builder.outcome import OutOfLimits


def shell(script: str, folder: Path, limits: ToolLimits | None = None) -> ToolRun:
    return run_tool(["bash", "-c", script], folder, limits or ToolLimits())


def test_output_of_both_streams_and_the_exit_status(tmp_path: Path) -> None:
    done = shell("echo out; echo err >&2; exit 3", tmp_path)
    assert sorted(done.output.split()) == ["err", "out"]
    assert (done.returncode, done.ok, done.timed_out) == (3, False, False)
    assert shell("true", tmp_path).ok


def test_it_runs_in_the_work_folder_and_speaks_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("FROM_OUTSIDE", "1")
    assert shell("echo $PWD $TMPDIR $LC_ALL $FROM_OUTSIDE", tmp_path).output.split() == [*[str(tmp_path)] * 2, "C", "1"]
    own = run_tool(["/bin/sh", "-c", "echo [$FROM_OUTSIDE]"], tmp_path, ToolLimits(), env={})
    assert own.output == "[]\n"


def test_a_tool_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    script = "sleep 1000 & echo $! > child; wait"
    done = shell(script, tmp_path, ToolLimits(timeout_s=1))
    assert done.timed_out
    assert not done.ok
    with pytest.raises(OutOfLimits) as refused:
        raise_out_of_limits(done)
    assert refused.value.status == "timeout"
    if text := (tmp_path / "child").read_text() if (tmp_path / "child").exists() else "":  # it may not have come so far
        wait_for(lambda: is_gone(int(text)), "its child ends")


def test_what_a_tool_leaves_running_is_ended(tmp_path: Path) -> None:
    done = shell("exec 3>&1 >/dev/null 2>&1; sleep 1000 3>&- & echo $! > child", tmp_path)
    assert done.ok
    wait_for(lambda: is_gone(int((tmp_path / "child").read_text())), "its child ends")


def test_a_flood_of_output_is_cut_and_does_not_block_the_tool(tmp_path: Path) -> None:
    done = shell("head -c 5000000 /dev/zero | tr '\\0' x; touch finished", tmp_path)
    assert done.ok
    assert len(done.output) == 1 << 20
    assert (tmp_path / "finished").exists()


def test_files_are_bounded(tmp_path: Path) -> None:
    limits = ToolLimits(file_gib=1 / 1024)
    assert not shell("head -c 3000000 /dev/zero > big", tmp_path, limits).ok
    assert (tmp_path / "big").stat().st_size <= 1 << 20
    assert shell("head -c 1000000 /dev/zero > small", tmp_path, limits).ok


def test_memory_is_bounded_and_told_from_other_failures(tmp_path: Path) -> None:
    (tmp_path / "huge.cpp").write_text("template<int N> struct A { A<N-1> a; char c[1000]; };\n#error 'not memory'\n")
    plain = run_tool(["g++", "-c", "huge.cpp"], tmp_path, ToolLimits())
    assert not plain.ok
    assert not plain.out_of_memory
    take = [sys.executable, "-c", "x = bytearray(2 << 30)"]
    assert run_tool(take, tmp_path, ToolLimits(memory_gib=16)).ok
    assert "MemoryError" in run_tool(take, tmp_path, ToolLimits(memory_gib=1)).output
    done = run_tool(["g++", "-c", "huge.cpp"], tmp_path, ToolLimits(memory_gib=0.02))
    assert not done.ok


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
        raise_out_of_limits(done)
    assert refused.value.status == "out_of_memory"
    raise_out_of_limits(ToolRun(0, words, 1.0, 1.0))  # a source may say it too
    raise_out_of_limits(ToolRun(1, "error: expected ';'", 1.0, 1.0))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("kill -KILL $$", "killed from outside"),
        ("kill -TERM $$", "killed from outside"),
        ("echo 'g++: fatal error: Killed signal terminated program cc1plus'; exit 1", "killed from outside"),
        ("echo 'x.o: No space left on device'; exit 1", "disk full"),
        ("echo 'Disk quota exceeded'; exit 1", "disk full"),
    ],
)
def test_faults_of_the_machine_are_no_fault_of_the_source(tmp_path: Path, script: str, words: str) -> None:
    with pytest.raises(HarnessError, match=words):
        shell(script, tmp_path)


def test_a_program_that_is_not_there_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="no-such-compiler cannot be started"):
        run_tool(["no-such-compiler"], tmp_path, ToolLimits())


def test_a_tool_that_dies_by_itself_is_the_sources_fault(tmp_path: Path) -> None:
    """A compiler that crashes on a source, or runs into its limit of memory."""
    assert shell("kill -SEGV $$", tmp_path).returncode == -11
    assert shell("echo 'out of memory allocating 1 bytes'; kill -KILL $$", tmp_path).out_of_memory


def test_a_meter_adds_the_processor_time_of_all_children(tmp_path: Path) -> None:
    meter = Meter()
    burn = "import os\nwhile os.times().user < 0.2: pass"
    first = meter.run([sys.executable, "-c", burn], tmp_path, ToolLimits())
    both = meter.run(["bash", "-c", f"{sys.executable} -c '{burn}'; sleep 0.1"], tmp_path, ToolLimits())
    assert first.cpu_seconds >= 0.2
    assert both.cpu_seconds >= 0.2
    assert meter.cpu_seconds == pytest.approx(first.cpu_seconds + both.cpu_seconds)


def test_nothing_runs_beyond_the_deadline_of_its_build(tmp_path: Path) -> None:
    done = Meter().run(["sleep", "1000"], tmp_path, ToolLimits(), deadline=time.monotonic() - 1)
    assert done.timed_out
    assert Meter().run(["true"], tmp_path, ToolLimits(timeout_s=1000), deadline=time.monotonic() + 1000).ok


def test_no_core_is_left(tmp_path: Path) -> None:
    shell("kill -ABRT $$", tmp_path)
    assert os.listdir(tmp_path) == []
