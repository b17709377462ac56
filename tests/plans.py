"""The plan of a scale, as the Snakefile makes it; copies of the files that plans and the workflow are made from."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from dice.study.config import load_study
from dice.study.plan import Plan
from dice.study.registry import load_registry

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENTS = ROOT / "experiments"


def plan(scale: str, **overrides: Any) -> Plan:
    """The plan, with what `--config` would override."""
    return Plan(load_study(EXPERIMENTS / "config", scale, overrides), load_registry(EXPERIMENTS))


def copy_registry(folder: Path) -> None:
    """Copy the files that `load_registry` reads, to be changed."""
    for name in ("models", "hub", "tables", "figures", "claims"):
        shutil.copy(EXPERIMENTS / f"{name}.yaml", folder)


def copy_workflow(folder: Path) -> None:
    """Copy what the workflow reads, so that no result of this checkout is in the way."""
    for name in ("experiments", "profiles", "paper", "docs/schema"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "Snakefile", folder)
