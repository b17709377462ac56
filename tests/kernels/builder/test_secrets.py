"""Compilers read the toolchain and the candidate's own files: no spelling brings anything else of the machine back."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from pathlib import Path

import pytest
from extension_requests import inline

from dice.kernels.builder.builder import Builder
from dice.kernels.builder.compiler import ToolJail, ToolLimits
from dice.kernels.candidate.extension_loader import load_extension

SECRET = "swordfish_4711"
READERS = {  # spelling -> C++ whose messages or object repeat the file @, or tell whether it is there
    "include": '#include "@"',
    "angle brackets": "#include <@>",
    "comment inside": '#/**/include "@"',
    "comments around": '/**/ # /**/ include /**/ "@"',
    "line continued": '#inc\\\nlude "@"',
    "digraph": '%:include "@"',
    "import": '#import "@"',
    "include_next": '#include_next "@"',
    "macro": '#define FILE "@"\n#include FILE',
    "macro of a macro": "#define TEXT(x) #x\n#define FILE(x) TEXT(x)\n#include FILE(@)",
    "whether it is there": '#if __has_include("@")\n#error there\n#else\n#error not there\n#endif',
    "whether it is newer": '#pragma GCC dependency "@"\n#error the end',
    "a line that a message quotes": '#line 1 "@"\nint error error;',
    "incbin": 'asm(".incbin \\"@\\"");',
    "include of the assembler": 'asm(".include \\"@\\"");',
    "incbin by a macro": 'asm(".macro read file\\n.incbin \\"\\\\file\\"\\n.endm\\nread @");',
    "incbin in a loop": 'asm(".irp file, @\\n.incbin \\"\\\\file\\"\\n.endr");',
    "a raw string": 'asm(R"(.incbin "@")");',
}
NEWER = {  # of compilers later than GCC 12
    "embed": 'const char text[] = {\n#embed "@"\n};',
    "whether it can be embedded": '#if __has_embed("@")\n#error there\n#else\n#error not there\n#endif',
}
COMMAND = ["g++", "-c", "unit.cpp", "-o", "unit.o"]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def what_comes_back(work: Path, output: str) -> str:
    """All that a compiler leaves of one unit: its messages and its object. Its temporary files have random names."""
    unit = work / "unit.o"
    left = unit.read_bytes().decode("latin-1") if unit.exists() else ""
    unit.unlink(missing_ok=True)
    return re.sub(r"\bcc\w{6}\.", "", output + left)


def outside(work: Path) -> str:
    """Without a jail."""
    done = subprocess.run(COMMAND, cwd=work, capture_output=True, text=True, check=False)
    return what_comes_back(work, done.stdout + done.stderr)


def inside(jail: ToolJail, work: Path) -> str:
    return what_comes_back(work, jail.run(COMMAND, work, ToolLimits()).output)


@pytest.mark.parametrize("spelling", [*READERS, *NEWER])
def test_a_file_outside_is_neither_read_nor_told(jail: ToolJail, work: Path, spelling: str) -> None:
    secret = work.parent / "secret"
    (work / "unit.cpp").write_text((READERS | NEWER)[spelling].replace("@", str(secret)) + "\n")
    absent, absent_outside = inside(jail, work), outside(work)
    secret.write_text(f"{SECRET}\n")
    if spelling in READERS:
        assert outside(work) != absent_outside, "this spelling reads nothing, and proves nothing"
    present = inside(jail, work)
    assert SECRET not in present
    assert present == absent


@pytest.mark.parametrize("path", ["../secret", "../../{parent}/secret", "link"])
def test_a_way_around_leads_nowhere(jail: ToolJail, work: Path, path: str) -> None:
    secret = work.parent / "secret"
    (work / "link").symlink_to(secret)
    text = 'asm(".incbin \\"@\\"");\n'.replace("@", path.format(parent=work.parent.name))
    (work / "unit.cpp").write_text(text)
    absent = inside(jail, work)
    secret.write_text(SECRET)
    assert SECRET in outside(work)
    assert inside(jail, work) == absent


def test_its_own_files_and_the_toolchains_are_read(jail: ToolJail, work: Path) -> None:
    (work / "own").mkdir()
    (work / "own" / "numbers.h").write_text("int numbers[] = {1};\n")
    (work / "table").write_text(SECRET)
    for own in ("own/numbers.h", f"{work}/own/numbers.h"):
        lines = [
            "#include <cmath>",
            "#include </usr/include/math.h>",
            f'#include "{own}"',
            'asm(".incbin \\"table\\"");',
        ]
        (work / "unit.cpp").write_text("\n".join(lines) + "\n")
        assert SECRET in inside(jail, work)


def test_the_environment_of_whoever_compiles_stays_outside(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    with contextlib.closing(ToolJail()) as jail:
        own = os.getpid()
        server = jail.run(["true"], work, ToolLimits())
        assert server.ok
        for process in ("self", "1", "2", "thread-self", str(own), str(os.getppid())):
            for kind in ("environ", "cmdline"):
                (work / "unit.cpp").write_text(f'asm(".include \\"/proc/{process}/{kind}\\"");\n')
                assert SECRET not in inside(jail, work)
        shown = jail.run(["sh", "-c", "env; cat /proc/*/environ /proc/*/task/*/environ"], work, ToolLimits()).output
        assert f"TMPDIR={work}" in shown
        assert SECRET not in shown
        numbers = jail.run(["sh", "-c", "echo /proc/[0-9]*"], work, ToolLimits()).output.split()
        assert len(numbers) < 4  # itself and process 1


def test_the_folder_of_another_build_is_not_seen(jail: ToolJail, work: Path) -> None:
    other = work.parent / "other"
    other.mkdir()
    (other / "secret").write_text(SECRET)
    assert jail.run(["true"], other, ToolLimits()).ok
    assert SECRET not in jail.run(["sh", "-c", f"ls {other}; cat {other}/secret"], work, ToolLimits()).output


def test_a_whole_build_reads_nothing_either(cpu_builder: Builder, tmp_path: Path) -> None:
    """Nothing in the module, in what is said, nor in the cache; the builder's own reading of macros included."""
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET};\n")
    source = f"""
#if __has_include("{secret}")
int64_t there() {{ return 1; }}
#else
int64_t there() {{ return 0; }}
#endif
"""
    result = cpu_builder.build(inline(source, None, functions=["there"]))
    assert result.status == "built", result.message
    assert load_extension(result.path or "", "e").there() == 0  # pyright: ignore[reportAttributeAccessIssue]
    kernel = f"""
#define MAKE(name) __global__ void name(float* x) {{ x[0] = 1; }}
#/**/include "{secret}"
MAKE(first)
"""
    result = cpu_builder.build(inline("", kernel))
    assert result.status != "built"
    assert "No such file" in result.message
    for text in (result.model_dump_json(), *map(str, cpu_builder.folder.rglob("*"))):
        assert SECRET not in text
    for path in (cpu_builder.folder / "objects").rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()
