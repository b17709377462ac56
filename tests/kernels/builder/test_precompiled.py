"""Precompiled headers: one that fits, or says that it does not."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dice.kernels.builder import cpu_toolchain
from dice.kernels.builder.artefacts import NotPrepared
from dice.kernels.builder.compiler import Meter, ToolJail, ToolLimits, Workbench
from dice.kernels.builder.headers import HeaderSpec
from dice.kernels.builder.precompiled import Precompiled, wrap_flags
from dice.kernels.builder.toolchain import Toolchain

SPEC = HeaderSpec("small", "struct Small { int member; };\n", slim=False)


@pytest.fixture
def precompiled(cpu_toolchain: Toolchain, jail: ToolJail, tmp_path: Path) -> Precompiled:
    return Precompiled(cpu_toolchain, tmp_path / "made", jail)


def compiles(precompiled: Precompiled, work: Path, text: str, *more: str, spec: HeaderSpec = SPEC) -> str:
    bench = Workbench(work, Meter(precompiled.jail), ToolLimits(60.0), math.inf)
    done = precompiled.compile_host(bench, text, precompiled.header(spec), "unit.o", ["-fsyntax-only", *more])
    return "" if done.ok else done.output


def test_a_unit_starts_from_its_header(precompiled: Precompiled, tmp_path: Path) -> None:
    assert compiles(precompiled, tmp_path, "int f(Small s) { return s.member; }") == ""
    assert "no member named" in compiles(precompiled, tmp_path, "int f(Small s) { return s.other; }")
    assert (tmp_path / "unit.cpp").read_text().startswith("int f")  # the header is not part of its lines


def test_a_use_shows_in_the_folders_time(precompiled: Precompiled) -> None:
    precompiled.header(SPEC)
    [folder] = (path for path in (precompiled.folder / "headers").iterdir() if path.is_dir())
    os.utime(folder, (1.0, 1.0))
    precompiled.header(SPEC)
    assert folder.stat().st_mtime > 1.0


def test_a_header_for_other_flags_says_that_it_does_not_fit(precompiled: Precompiled, tmp_path: Path) -> None:
    assert "does not fit" in compiles(precompiled, tmp_path, "Small s;", "-fshort-enums", "-O2", "-fopenmp")


def test_each_set_of_flags_has_a_header(precompiled: Precompiled, tmp_path: Path) -> None:
    text = "#ifndef MORE\n#error MORE is not defined\n#endif\nSmall s;"
    assert "MORE is not defined" in compiles(precompiled, tmp_path, text)
    assert compiles(precompiled, tmp_path, text, spec=replace(SPEC, flags=("-DMORE",))) == ""


def test_a_header_that_does_not_compile_is_not_prepared(precompiled: Precompiled) -> None:
    with pytest.raises(NotPrepared, match=r"failed on our own source: .*no_such_header"):
        precompiled.header(HeaderSpec("broken", "#include <no_such_header.h>\n", slim=False))


def test_a_header_that_no_unit_can_start_from_is_not_prepared(
    precompiled: Precompiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags, further = precompiled._header_flags(SPEC), iter([(), ("-fshort-enums", "-O2", "-fopenmp")])
    monkeypatch.setattr(precompiled, "_header_flags", lambda _: (*flags, *next(further)))
    with pytest.raises(NotPrepared, match=r"the precompiled header cannot be used: .*does not fit"):
        precompiled.header(SPEC)


@pytest.mark.parametrize(
    ("make", "modules"),
    [
        (Precompiled.launch_object, ["precompiled.py"]),
        (Precompiled.vocabulary, ["vocabulary.py", "headers.py", "precompiled.py"]),
        (cpu_toolchain.runtime_library, ["artefacts.py", "precompiled.py", "slim_headers.py", "cpu_toolchain.py"]),
    ],
    ids=["launch object", "vocabulary", "runtime library"],
)
def test_what_our_code_makes_is_another_when_the_code_is(
    precompiled: Precompiled, monkeypatch: pytest.MonkeyPatch, make: Callable[[Precompiled], object], modules: list[str]
) -> None:
    names: list[str] = []

    def name_only(name: str, *_: object) -> Path:
        names.append(name)
        raise NotPrepared(name)

    monkeypatch.setattr(precompiled, "artefact", name_only)
    for changed in ("", *modules, "csrc"):
        digests = {changed: "another"}
        for place in ("precompiled", "cpu_toolchain"):
            home = f"dice.kernels.builder.{place}"
            monkeypatch.setattr(f"{home}.source_digest", lambda module, digests=digests: digests.get(module, "one"))
            monkeypatch.setattr(f"{home}.files_digest", lambda *_, digests=digests: digests.get("csrc", "one"))
        with pytest.raises(NotPrepared):
            make(precompiled)
    assert len(set(names)) == len(modules) + 2


def test_launches_are_led_through_the_counter() -> None:
    assert "-Wl,--wrap=cudaLaunchKernel" in wrap_flags()
    assert all(flag.startswith("-Wl,--wrap=") for flag in wrap_flags())
