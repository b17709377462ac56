"""What is made once per machine: each artefact once, whole or absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice.errors import HarnessError
from dice.kernels.builder.artefacts import Artefacts, NotPrepared
from dice.kernels.builder.compiler import Meter, ToolJail, ToolLimits


@pytest.fixture
def artefacts(jail: ToolJail, tmp_path: Path) -> Artefacts:
    return Artefacts(tmp_path / "made", jail)


def test_an_artefact_is_made_once_and_by_whoever_comes_first(artefacts: Artefacts) -> None:
    made: list[Path] = []

    def make(out: Path, _: Meter) -> None:
        made.append(out)
        (out / "file").write_text("content")

    path = artefacts.artefact("folder/thing", make)
    other = Artefacts(artefacts.folder, artefacts.jail)
    assert other.artefact("folder/thing", make) == path
    assert len(made) == 1
    assert (path / "file").read_text() == "content"
    assert made[0] != path  # made elsewhere, and renamed when it was whole


def test_a_failure_is_remembered_and_leaves_nothing_half_made(artefacts: Artefacts) -> None:
    made = 0

    def make(out: Path, _: Meter) -> None:
        nonlocal made
        made += 1
        (out / "file").write_text("half")
        raise NotPrepared("the reason")

    for _ in range(2):
        with pytest.raises(NotPrepared, match=r"thing: the reason .*thing\.failed"):
            artefacts.artefact("thing", make)
    assert made == 1
    assert {path.name for path in artefacts.folder.iterdir()} == {"thing.failed", "thing.lock"}


def test_an_error_of_ours_is_not_remembered(artefacts: Artefacts) -> None:
    def fail(out: Path, _: Meter) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        artefacts.artefact("thing", fail)
    assert artefacts.artefact("thing", lambda out, _: None).is_dir()


def test_a_compiler_that_runs_out_of_time_is_tried_again(artefacts: Artefacts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dice.kernels.builder.artefacts.LIMITS", ToolLimits(timeout_s=0.2))
    with pytest.raises(HarnessError, match="took more than"):
        artefacts.artefact("thing", lambda out, meter: artefacts.compile_own(meter, ["sleep", "60"], out))
    assert artefacts.artefact("thing", lambda out, meter: artefacts.compile_own(meter, ["true"], out)).is_dir()
