"""The plan of a scale, as the Snakefile makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dice.study.config import load_study
from dice.study.plan import Plan
from dice.study.registry import load_registry

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"


def plan(scale: str, **overrides: Any) -> Plan:
    """The plan, with what `--config` would override."""
    return Plan(load_study(EXPERIMENTS / "config", scale, overrides), load_registry(EXPERIMENTS))
