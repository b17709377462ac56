"""The scale `rehearsal` is the scale `paper` but for sizes, so that what it runs is what `paper` would run."""

from __future__ import annotations

import copy
import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plans import EXPERIMENTS, ROOT, copy_workflow, plan
from stage_specs import specs

from dice.config import parse_config, read_yaml
from dice.data.leakage.stage import LeaksConfig
from dice.errors import DiceError
from dice.report.tables import TableConfig
from dice.standins.checkpoints import PUBLISHED
from dice.standins.stage import StandInsConfig
from dice.study.config import Study, check_study, merged
from dice.study.plan import Plan
from dice.study.registry import load_registry
from dice.study.reports import settings, table_spec
from dice.study.units import RELEASED

SIZES = {
    # where it runs and what stands for what others made
    "extends", "results", "stand_ins", "supplied", "recorded", "vllm", "accept",
    "backend", "device", "gpus", "processes", "threads",
    "prompt.kernelbench_sha256",  # of the stand-in's own text
    # lengths, steps, answers of a step
    "new_tokens", "sft.max_steps", "sft.packs_per_step", "sft.head_chunk", "rl_steps",
    "rl.rollout.max_new_tokens", "rl.rollout.problems_per_step", "rl.rollout.samples",
    # how many jobs and workers, and what they cost: nothing of it may change a verdict
    "shards", "verify.machine", "rl.reward.machine", "costs",
}  # fmt: skip
"""All that the rehearsal may say. A key stands for those below it."""
STOOD_FOR = {"suite.source"}
"""Where the scale looks for what a stand-in replaces."""


def leaves(value: Any, *path: str | int) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """(path, value) of everything in nested mappings and lists; a list of plain values is one leaf."""
    plain = not isinstance(value, dict) and not (isinstance(value, list) and any(isinstance(x, dict) for x in value))
    if plain or not value:
        yield path, value
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves(inner, *path, key)


def is_size(path: tuple[str | int, ...]) -> bool:
    return any(".".join(map(str, path[:depth])) in SIZES for depth in range(1, len(path) + 1))


def written(scale: str) -> dict[str, Any]:
    return read_yaml(EXPERIMENTS / "config" / f"{scale}.yaml")


def complete(*scales: str) -> dict[str, Any]:
    """All values of the merged files."""
    values = merged(*map(written, ("common", *scales)), {"scale": "rehearsal"})
    values.pop("extends", None)
    return values


def test_nothing_is_changed_but_sizes():
    changed = [path for path, _ in leaves(written("rehearsal")) if not is_size(path)]
    assert changed == []
    assert written("rehearsal")["extends"] == "paper"


def test_a_size_of_the_list_is_smaller_than_at_the_paper():
    paper, small = plan("paper"), plan("rehearsal")
    assert small.study.shards < paper.study.shards
    for unit in ("8B-sft", "8B-dice", "8B-rl1"):
        large, little = paper.training_spec(unit), small.training_spec(unit)
        for name in ("packs_per_step", "max_steps"):
            assert little.get(name, 0) <= large.get(name, 8)
        for one, other in zip(little.get("phases", ()), large.get("phases", ()), strict=True):
            assert one["steps"] < other["steps"]
    for unit in small.units:
        if "max_new_tokens" in settings(small, unit):
            assert settings(small, unit)["max_new_tokens"] < settings(paper, unit)["max_new_tokens"]


def test_the_same_models_are_fetched_trained_and_asked():
    paper, small = plan("paper"), plan("rehearsal")
    for rule in ("base", "fetch", "sft", "rl"):
        assert small.models_by(rule) == paper.models_by(rule)
    given = small.supplied | small.recorded
    accepted = plan("paper", accept=small.study.accept)
    assert [unit for unit in small.units if unit not in given] == accepted.units
    assert all(small.seeds(unit) == paper.seeds(unit) for unit in paper.units)
    released = plan("released")
    for number, table in released.registry.tables.items():
        for row in table.rows:
            if released.evidence(row).unit:
                assert small.evidence(row).unit, f"table {number}, {row.row}: measured at released alone"


def test_nothing_is_taken_from_elsewhere():
    """No hub, no file of the user's: all of it is below the results, made by the rule `standins`."""
    one = plan("rehearsal")
    assert {one.fetch_spec(unit)["mirror"] for unit in one.models_by("fetch")} == {one.mirror}
    made = [*one.stand_ins, *one.stand_ins_spec()["checkpoints"], one.suite_source, one.kernelbench]
    assert all(path is not None and one.made(path) for path in made)
    curated = [source["path"] for name in one.datasets("curate") for source in one.curate_spec(name)["sources"]]
    files = [one.file(dataset.path) for dataset in one.study.datasets.values() if dataset.path]
    assert {*curated, *files, *one.supplied.values(), *one.recorded.values()} == {*one.stand_ins}
    assert plan("paper").mirror is None
    assert plan("paper").file("data/x.jsonl") == "data/x.jsonl"


def test_every_row_of_the_papers_main_tables_is_measured():
    """The three of Table 1 that can no longer be called by recorded answers; their successors are asked for by name."""
    one = plan("rehearsal")
    rows = [row for number in (1, 2, 3) for row in one.registry.tables[number].rows if not row.added]
    assert len(rows) == 33
    assert [row.row for row in rows if one.evidence(row).unit is None] == []
    for unit in one.models_by("fetch"):
        if unit.removeprefix(RELEASED) in {row.model for row in rows} and one.registry.models[unit[4:]].server is None:
            assert one.family(unit) in PUBLISHED


def test_no_stand_in_is_called_what_it_stands_for():
    """Random weights have no number of the paper's beside them, nor a size."""
    one = plan("rehearsal")
    for number in one.registry.tables:
        spec = table_spec(one, number)
        assert not parse_config(TableConfig, spec, "table").comparable
        said = [row["measured"] for row in (*spec["rows"], *spec["stages"]) if row["measured"]]
        assert {text.partition(" ")[0] for text in (spec["benchmark"], *(row["model"] for row in said))} == {"stand-in"}
        assert not any("params" in row for row in said)
    paper = table_spec(plan("paper", accept=one.study.accept), 1)
    assert paper["benchmark"] == "kernelbench-v0.1"
    assert not any("stand-in" in row["measured"].get("model", "") for row in paper["rows"])


def told(values: dict[str, Any]) -> str:
    """All that jobs are told, and what else the rules read, of a study."""
    study = parse_config(Study, values, "test")
    check_study(study)
    one = Plan(study, load_registry(EXPERIMENTS))
    # the user's files are below: only those that something is trained on
    jobs = [[kind.__name__, spec] for kind, spec in specs(one) if kind not in (StandInsConfig, LeaksConfig)]
    trained = {recipe.dataset for unit in one.models if one.is_trained(unit) and (recipe := one.recipe(unit))}
    files = {name: study.datasets[name].path for name in trained}
    return json.dumps([jobs, files, {unit: one.seeds(unit) for unit in one.units}], sort_keys=True, default=str)


def another(value: Any) -> Any:
    """A value of the same kind that is not this one."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + 1
    return value[:-1] if isinstance(value, list) else f"{value}x"


@pytest.mark.parametrize("scale", ["paper", "released"])
def test_each_key_is_exercised(scale):
    """Every key that the scale writes has the same value in the rehearsal, whose jobs are told another where it changes."""
    values = complete("paper", "rehearsal")
    before = told(values)
    for path, value in leaves(written(scale)):
        if is_size(path) or ".".join(map(str, path)) in STOOD_FOR:
            continue
        changed = copy.deepcopy(values)
        place: Any = changed
        for key in path[:-1]:
            place = place[key]
        assert place[path[-1]] == value, path
        place[path[-1]] = another(value)
        try:
            after = told(changed)
        except DiceError:
            continue  # it was read, and refused
        assert after != before, f"{'.'.join(map(str, path))} of {scale} is not exercised by the rehearsal"


def test_a_key_that_nothing_reads_would_be_found():
    values = complete("paper", "rehearsal")
    unused = copy.deepcopy(values)
    unused["datasets"]["nobodys"] = {"stage": "file", "path": "data/nobodys.jsonl"}
    assert told(unused) == told(values)


@pytest.mark.slow
def test_the_whole_study_runs_on_two_cores(tmp_path):
    """From nothing to every table and figure with DeepSpeed's engines in two processes: half an hour of two cores."""
    pytest.importorskip("deepspeed")
    copy_workflow(tmp_path)
    shutil.copytree(ROOT / "tests/servers", tmp_path / "tests/servers")
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "tables", "figures", "--config", "scale=rehearsal"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    one = plan("rehearsal")
    for number in (1, 2, 3, 5, 6, 7):
        with (tmp_path / "results" / "rehearsal" / f"table{number}.csv").open() as stream:
            measured = {row["row"] for row in csv.DictReader(stream) if row["status"] == "measured"}
        assert measured >= {row.row for row in one.registry.tables[number].rows if one.evidence(row).unit}
