"""The workflow as a workflow: it parses, is formatted and linted, plans the right jobs, and reruns what depends."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from plans import ROOT, copy_workflow

from dice.study.code import code_digest

BIN = Path(sys.executable).parent


def snakemake(*arguments: str, folder: Path = ROOT, check: bool = True) -> str:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    text = done.stdout + done.stderr
    assert not check or done.returncode == 0, text[-3000:]
    return text


@pytest.fixture
def checkout(tmp_path) -> Path:
    copy_workflow(tmp_path)
    return tmp_path


def counts(text: str) -> dict[str, int]:
    """Job counts of a dry run."""
    return {name: int(n) for name, n in re.findall(r"^([a-z]\w*) +(\d+)$", text.split("Job stats:")[-1], re.MULTILINE)}


def planned(folder: Path, scale: str, *targets: str) -> dict[str, int]:
    return counts(snakemake("-n", "-q", "rules", "--config", f"scale={scale}", "--", *targets, folder=folder))


@pytest.mark.parametrize(
    ("scale", "table", "expected"),
    [
        ("tiny", "results/table1.csv", {"base": 2, "rl": 2, "generate": 5, "verify": 5, "gather": None, "score": 5}),
        ("smoke", "results/smoke/table1.csv", {"sft": 4, "rl": 2, "generate": 5, "verify": 5, "table": 1}),
        ("nano", "results/nano/table6.csv", {"rl": 54, "generate": 66, "verify": 66, "table": 1}),
        ("released", "results/released/table1.csv", {"kernelbench": 1, "generate": 14, "serve": 1, "verify": 16}),
        ("paper", "results/paper/table1.csv", {"rl": 2, "generate": 32, "verify": 152, "score": 18, "table": 1}),
    ],
)
def test_job_counts(checkout, scale, table, expected):
    found = planned(checkout, scale, table)
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize("scale", ["tiny", "nano", "released", "paper"])
def test_everything_is_a_target_at_every_scale(checkout, scale):
    """All tables, figures and reports are planned without a missing input; with GPUs, the estimate of their hours. A plan
    writes nothing, so that it locks nobody out."""
    results = "results" if scale == "tiny" else f"results/{scale}"
    targets = [
        "tables",
        "figures",
        *(f"{results}/{name}" for name in ("claims.csv", "explorer/index.html", "paper/dice.pdf")),
    ]
    text = snakemake("-n", "-q", "rules", "--config", f"scale={scale}", "--", *targets, folder=checkout)
    found = counts(text)
    assert (found["table"], found["figure"], found["claims"], found["explorer"], found["paper"]) == (12, 6, 1, 1, 1)
    assert bool(re.search(rf"scale {scale}, all tables, estimated GPU-hours: [1-9]", text)) == (scale != "tiny")
    assert not (checkout / "results").exists()


def test_a_profile_keeps_its_scale_beside_other_settings(checkout):
    """`--config` on the command line takes the place of a profile's `config`: the scale must not stand there."""
    settings = ["--workflow-profile", "profiles/nano", "--config", "seeds=[0,1]"]
    settings += ["train_each_seed=false", "--", "results/nano/table1.csv"]
    found = counts(snakemake("-n", "-q", "rules", *settings, folder=checkout))
    assert (found["generate"], found["score"]) == (5, 5), "greedy answers are made once, whatever the seeds"


def test_published_solutions_are_planned_without_the_hub(checkout, tmp_path):
    (tmp_path / "level1").mkdir()
    (tmp_path / "solutions.jsonl").touch()
    settings = [
        f'supplied={{"CUDA-L1": "{tmp_path}/solutions.jsonl"}}',
        f'suite={{"source": "{tmp_path}"}}',
        "hub_rows=false",
    ]
    profile = ["--workflow-profile", "profiles/released", "--config", *settings]
    found = counts(snakemake("-n", "-q", "rules", *profile, "--", "results/released/table1.csv", folder=checkout))
    assert {name: n for name, n in found.items() if name in ("supplied", "fetch", "generate", "verify", "score")} == {
        "supplied": 1,
        "verify": 1,
        "score": 1,
    }


def test_servers_and_records_answer_for_rows(checkout, tmp_path):
    """A successor through its vendor's server, an old model from a record, one in a local vLLM, which is looked for first."""
    (tmp_path / "gemini.jsonl").touch()
    priced = '{"prices": {"prompt": 2, "completion": 12.5}, "budget": {"money": 40}, "sends_seed": false}'
    settings = [
        f'servers={{"Gemini-3.1-Pro": {priced}, "Qwen3-8B": {{}}}}',
        f'recorded={{"Gemini-3-Pro": "{tmp_path}/gemini.jsonl"}}',
    ]
    text = snakemake(
        "-n", "-q", "rules", "--config", "scale=tiny", *settings, "--", "results/table1.csv", folder=checkout
    )
    found = counts(text)
    wanted = {"messages": 1, "ask": 1, "recorded": 1, "vllm": 1, "fetch": 1, "serve": 1, "generate": 4, "score": 7}
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--config", "scale=tinny"),
            "scale 'tinny' is not one of nano, paper, rehearsal, released, smoke, tiny, wide.",
        ),
        (("--config", "sclae=tiny"), "--config sclae: not a setting of the study; it has .*"),
        (
            ("--workflow-profile", "profiles/nanno"),
            "--workflow-profile profiles/nanno: no such profile; profiles/ has .*",
        ),
    ],
)
def test_a_misspelt_scale_setting_or_profile_stops_with_one_sentence(checkout, arguments, sentence):
    *said, last = snakemake("-n", *arguments, folder=checkout, check=False).strip().splitlines()
    assert re.fullmatch(f"snakemake: {sentence}", last)
    assert all(line.startswith("Using workflow specific profile") for line in said)


def test_lint_and_format():
    text = snakemake("--lint", check=False)
    assert "Congratulations" in text, text[-3000:]
    rules = [str(path) for path in sorted((ROOT / "experiments" / "rules").glob("*.smk"))]
    subprocess.run([sys.executable, "-m", "snakefmt.snakefmt", "--check", "Snakefile", *rules], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    ("start", "first", "absent"),
    [
        ("verdicts", "archived_verdicts", {"verify", "gather", "generate", "rl"}),
        ("generations", "archived_generations", {"generate", "archived_model", "rl"}),
        ("checkpoints", "archived_model", {"sft", "rl", "base"}),
    ],
)
def test_start_from(checkout, start, first, absent):
    """The evidence of an earlier run is taken from its archive, and nothing before it is made."""
    archive = checkout / "archive"
    for unit in ("8B-base", "8B-sft", "8B-dice", "8B-qwen3", "8B-qwen3_sft"):
        for name in (f"verdicts/{unit}/seed0.jsonl", f"generations/{unit}/seed0.jsonl", f"models/{unit}/config.json"):
            (archive / name).parent.mkdir(parents=True)
            (archive / name).write_text("{}\n")
    settings = ["--config", f"start_from={start}", f"archive={archive}"]
    found = counts(snakemake("-n", "--quiet=rules", "results/table1.csv", *settings, folder=checkout))
    assert found[first] == 5
    assert not absent & set(found)


def test_start_from_without_an_archive_is_no_plan(checkout):
    text = snakemake("-n", "results/table1.csv", "--config", "start_from=verdicts", folder=checkout, check=False)
    assert "archive" in text
    assert "Job stats" not in text


def test_each_job_is_a_line_and_editing_a_module_reruns_exactly_what_depends_on_it(checkout, monkeypatch):
    shutil.copytree(ROOT / "src", checkout / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    monkeypatch.setenv("PYTHONPATH", str(checkout / "src"))
    targets = [f"results/smoke/data/{name}" for name in ("prompts.jsonl", "rl_end_to_end.jsonl")]
    settings = ["--config", "scale=smoke"]
    plan = snakemake("-n", "-p", *targets, "results/smoke/models/8B-base", *settings, folder=checkout)
    assert re.search(
        r"state=results/smoke/state/8B-base-\w{12}-" + code_digest("sft") + r"-\$\(dice fingerprint ", plan
    )
    assert re.search(
        r"^problems: load the problems of the benchmark  \[Missing output files: .*problems.jsonl\]$", plan, re.M
    )
    text = snakemake(*targets, *settings, folder=checkout)
    lines = re.findall(r"^\d\d:\d\d:\d\d +(\d) of 7  about .+ left +(\w+): .+$", text, re.MULTILINE)
    assert [number for number, _ in lines] == [*"1234567"]
    assert {rule for _, rule in lines} == {"mini", "problems", "prompts", "synth", "exam_problems"}
    assert "src/dice" not in plan + text

    module = checkout / "src" / "dice" / "evaluation" / "prompts" / "chat.py"
    os.utime(module)
    assert "Nothing to be done" in snakemake("-n", *targets, *settings, folder=checkout)
    module.write_text(module.read_text() + "# another comment\n")
    found = counts(snakemake("-n", "--quiet=rules", *targets, *settings, folder=checkout))
    assert found == {"prompts": 1, "total": 1}


@pytest.mark.slow
@pytest.mark.first
def test_a_real_run_from_nothing_to_every_table_and_figure(checkout):
    """Data, base, fine-tuning, RL, answers, verdicts, all tables and figures; then nothing is left to do.

    Without the exam, of which no table or figure is made: its problems, which data leave out, are made for real above."""
    settings = ["--config", "scale=smoke", 'exams={"composites": null}']
    snakemake("tables", "figures", *settings, folder=checkout)
    results = checkout / "results" / "smoke"
    measured = {k: (results / f"table{k}.csv").read_text().count(",measured,") for k in range(1, 13)}
    assert {k: measured[k] for k in (1, 5, 6, 7, 8)} == {1: 5, 5: 3, 6: 6, 7: 4, 8: 4}
    assert all((results / f"figure{k}.{kind}").stat().st_size for k in range(1, 7) for kind in ("csv", "pdf", "png"))
    table = "results/smoke/table1.csv"
    audit = [sys.executable, "-m", "dice.cli", "audit", table, "--cell", "DICE-8B:l1_exec"]
    done = subprocess.run(audit, cwd=checkout, capture_output=True, text=True, check=True)
    assert "(the same)" in done.stdout
    assert "changed" not in done.stdout
    assert "unverified:" not in done.stdout
    recorded = "results/recorded/smoke"
    record = ["record", "results/smoke", "--out", recorded]
    again = ["regenerate", recorded, "--out", "build"]
    explorer = ["explorer", "--results", f"build/smoke/{results.relative_to(checkout)}", "--out", "build/explorer"]
    for words in (record, again, explorer, ["audit", f"{recorded}/table1.csv", "--cell", "DICE-8B:l1_exec"]):
        done = subprocess.run([*audit[:3], *words], cwd=checkout, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    everything = [f"results/smoke/table{k}.csv" for k in measured] + [
        f"results/smoke/figure{k}.csv" for k in range(1, 7)
    ]
    assert "Nothing to be done" in snakemake("-n", *everything, *settings, folder=checkout)
