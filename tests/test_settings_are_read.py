"""A setting that nothing reads changes nothing: none is left (`tests/unread_settings.py` says how that is found)."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from unread_settings import unread_settings

from dice.model.transformer import ModelConfig

ROOT = Path(__file__).resolve().parents[1]

AS_A_WHOLE = {f"dice.training.sft_config.Geometry.{field.name}" for field in dataclasses.fields(ModelConfig)}
"""A geometry becomes the model's configuration, which has the same fields."""
IN_A_MANIFEST = {"dice.report.figures.FigureConfig.title"}
"""`dice tex` reads the caption in the figure's manifest."""


def workflow_code() -> str:
    """The Snakefile and its rules as one Python module, by Snakemake's own parser; they read settings of the study."""
    parser, sourcecache = pytest.importorskip("snakemake.parser"), pytest.importorskip("snakemake.sourcecache")
    files = SimpleNamespace(open=lambda file: io.StringIO(Path(file.path).read_text(encoding="utf-8")))
    rules = ROOT / "experiments" / "rules"
    paths = [rules / "common.smk", *sorted(set(rules.glob("*.smk")) - {rules / "common.smk"}), ROOT / "Snakefile"]
    return "\n".join(
        parser.parse(sourcecache.LocalSourceFile(str(path)), SimpleNamespace(sourcecache=files), {})[0]
        for path in paths
    )


@pytest.mark.slow  # pyright over a copy of the whole package
def test_every_setting_is_read(tmp_path):
    unread = unread_settings(ROOT / "src" / "dice", tmp_path, {"workflow.py": workflow_code()})
    assert unread - AS_A_WHOLE == IN_A_MANIFEST


SETTINGS = """
from __future__ import annotations
from dice.config import stage_config

@stage_config
class Phase:
    seed: int = 0
    steps: int = 1

@stage_config
class Run:
    seed: int = 0
    steps: int = 1
    phases: tuple[Phase, ...] = ()
    share: float = 0.5
    folder: str = ""
    results: str = ""

    def __post_init__(self) -> None:
        assert self.share < 1

    @property
    def place(self) -> str:
        return self.folder

class NoSettings:
    seed: int = 0
"""
USE = """
from package.settings import NoSettings, Phase, Run

class Trainer:
    def __init__(self, run: Run) -> None:
        self.run = run

    def length(self) -> int:
        return self.run.place.count("/") + sum(phase.steps + phase.seed for phase in self.run.phases)

def make(seed: int, none: NoSettings) -> Run:
    return Run(seed=none.seed, steps=seed, phases=(Phase(seed=seed, steps=2),))
"""
WORKFLOW = "from package.use import make, NoSettings\nRUN = make(1, NoSettings())\nprint(RUN.results)"


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "settings.py").write_text(SETTINGS)
    (folder / "use.py").write_text(USE)
    return folder


def test_a_dead_setting_is_found_although_others_of_its_name_are_read(package, tmp_path):
    """`share` is only checked; `seed` and `steps` of Run are given and read nowhere, those of Phase are read."""
    unread = unread_settings(package, tmp_path / "copy", {"workflow.py": WORKFLOW})
    assert unread == {f"package.settings.Run.{name}" for name in ("seed", "steps", "share")}


def test_a_workflow_that_does_not_read_a_setting_is_no_reader(package, tmp_path):
    assert "package.settings.Run.results" in unread_settings(package, tmp_path / "copy")
