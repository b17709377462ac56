"""The study as data: configurations, plan, and which code a stage depends on."""

from __future__ import annotations

import json

import pytest
import yaml
from jsonschema import Draft202012Validator
from plans import EXPERIMENTS, ROOT, copy_registry, plan

from dice.config import parse_config
from dice.errors import DiceError
from dice.evaluation.generate import GenerateConfig
from dice.kernels.verify import load_problems
from dice.model.families import FAMILIES
from dice.study.config import load_study, merged, scales, study_schema
from dice.study.costs import hours, job_costs, problems
from dice.study.plan import Plan
from dice.study.registry import load_registry
from dice.study.reports import table_spec
from dice.study.strata import strata_spec
from dice.study.workflow import check_command_line, images, is_dry_run, overrides_of

SCALES = ["nano", "paper", "rehearsal", "released", "smoke", "tiny", "wide"]


def test_the_scales_are_known():
    assert scales(EXPERIMENTS / "config") == SCALES


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_fits_the_schema(scale):
    study = load_study(EXPERIMENTS / "config", scale)
    from dice.config import to_spec

    errors = list(Draft202012Validator(study_schema()).iter_errors(to_spec(study)))
    assert not errors, errors[0].message


def test_the_shipped_schema_is_the_generated_one():
    shipped = json.loads((ROOT / "docs" / "schema" / "study.schema.json").read_text())
    assert shipped == json.loads(json.dumps(study_schema())), "run `dice schema` and commit the result"


@pytest.mark.parametrize(
    ("scale", "place"),
    [
        ("tiny", ("sft",)),
        ("tiny", ("suite", "generate")),
        ("tiny", ("suite", "verify")),
        ("tiny", ("exams", "composites", "verify")),
        ("tiny", ("datasets", "cuke", "spec")),
        ("tiny", ("datasets", "cuke", "spec", "generator")),
        ("paper", ("datasets", "cuke", "spec")),
    ],
)
def test_a_misspelt_setting_of_a_stage_is_refused_by_the_schema(scale, place):
    from dice.config import to_spec

    values = to_spec(load_study(EXPERIMENTS / "config", scale))
    settings = values
    for name in place:
        settings = settings[name]
    settings["no_such_setting"] = 1.0
    assert {tuple(error.absolute_path) for error in Draft202012Validator(study_schema()).iter_errors(values)} == {place}


def test_a_misspelt_scale_is_one_sentence():
    with pytest.raises(
        DiceError, match=r"^scale 'tinny' is not one of nano, paper, rehearsal, released, smoke, tiny, wide\.$"
    ):
        load_study(EXPERIMENTS / "config", "tinny")


def test_a_misspelt_key_is_refused():
    with pytest.raises(DiceError, match="seedz"):
        load_study(EXPERIMENTS / "config", "tiny", {"seedz": [1]})


def test_a_misspelt_profile_is_one_sentence():
    with pytest.raises(DiceError, match="no such profile"):
        check_command_line(["snakemake", "--workflow-profile", "profiles/nanno"], ROOT)
    check_command_line(["snakemake", "--workflow-profile", "profiles/nano"], ROOT)
    check_command_line(["snakemake", "--workflow-profile=none"], ROOT)


def test_an_unknown_override_is_refused():
    with pytest.raises(DiceError, match="sclae"):
        overrides_of({"sclae": "nano"})
    assert overrides_of({"scale": "nano", "shards": 2}) == {"shards": 2}
    # as Snakemake hands it over: inside of a mapping everything is text
    server = {
        "model": "m-2.5",
        "prices": {"prompt": "2", "completion": "0.5"},
        "sends_seed": "false",
        "extra": {"k": ["1"]},
    }
    timed = {"judging": {"measure_time": "false"}}
    assert overrides_of({"verify": timed}) == {"verify": {"judging": {"measure_time": False}}}
    sizes = {"4B": "null", "8B": {"qwen3": "null"}}
    assert overrides_of({"sizes": sizes}) == {"sizes": {"4B": None, "8B": {"qwen3": None}}}
    assert overrides_of({"sizes": {"4B": None}}) == {"sizes": {"4B": None}}
    suite = {"source": "KernelBench/KernelBench", "version": "kernelbench-v0.1", "generate": {"samples": "8"}}
    assert overrides_of({"suite": suite}) == {"suite": suite | {"generate": {"samples": 8}}}
    assert overrides_of({"own_engine": {"Row": {"memory_gib": "120"}}}) == {"own_engine": {"Row": {"memory_gib": 120}}}
    assert overrides_of({"servers": {"Row": server}}) == {
        "servers": {
            "Row": {
                "model": "m-2.5",
                "prices": {"prompt": 2, "completion": 0.5},
                "sends_seed": False,
                "extra": {"k": [1]},
            }
        }
    }


def test_images_may_be_texts_or_mappings(tmp_path):
    file = tmp_path / "images.yaml"
    file.write_text("images:\n  cpu: {uri: docker://a@sha256:1}\n  tex: docker://b@sha256:2\n")
    assert images(file) == {"cpu": "docker://a@sha256:1", "tex": "docker://b@sha256:2"}
    assert images(tmp_path / "none.yaml") == {}


def test_the_paper_scale_trains_every_variant():
    paper = plan("paper")
    for number in (4, 5, 6, 7):
        rows = [row for row in paper.registry.tables[number].rows if not row.added]
        assert len(paper.table_units(number)) == len(rows)


def test_tiny_measures_the_small_models_and_reports_the_rest():
    tiny = plan("tiny")
    evidence = {row.row: tiny.evidence(row) for row in tiny.registry.tables[1].rows}
    assert {row: found.unit for row, found in evidence.items() if found.unit} == {
        "Qwen3-8B": "8B-qwen3",
        "Qwen3-8B-sft": "8B-qwen3_sft",
        "SDAR-Chat-8B": "8B-base",
        "SDAR-Chat-8B-sft": "8B-sft",
        "DICE-8B": "8B-dice",
    }
    assert all(found.reason for found in evidence.values() if found.unit is None)


def test_a_base_reads_further_data_sets():
    """All are in its training, in the strata and kept from the exams; the tokenizer is of the first."""
    wide = plan("wide")
    files = [f"results/wide/data/{name}.jsonl" for name in ("corpus", "corpus_wide", "corpus_named", "corpus_named_on")]
    for unit in ("8B-base", "8B-qwen3"):
        spec = wide.training_spec(unit)
        assert spec["pairs"] == files
        assert spec["tokenizer"] == "results/wide/data/corpus.tokenizer"
        assert set(files) <= set(wide.training_inputs(unit))
    assert {f"{file}.leaks.json" for file in files} <= set(strata_spec(wide, 1)["leaks"])
    read = {"sizes": {"8B": {"sdar": {"further": ["cuke", "composites"]}}}}
    with pytest.raises(DiceError, match=r"^exams\.composites: models are trained on the data set 'composites'"):
        load_study(EXPERIMENTS / "config", "nano", read)
    with pytest.raises(DiceError, match="a base reads the data set 'corpse', which there is not"):
        load_study(EXPERIMENTS / "config", "wide", {"sizes": {"8B": {"sdar": {"further": ["corpse"]}}}})
    with pytest.raises(DiceError, match="corpus_wide is read beside `dataset`; name that too"):
        load_study(EXPERIMENTS / "config", "wide", {"sizes": {"8B": {"sdar": {"dataset": None}}}})


def test_a_size_that_is_left_out_says_why_in_each_of_its_rows():
    tiny = plan("tiny")
    for number in (2, 3, 4, 6, 7):
        rows = {row["row"]: row for row in table_spec(tiny, number)["rows"]}
        ours = [
            name for name in rows if name.startswith(("SDAR", "DICE", "threshold", "4B", "1.7B")) and "8B" not in name
        ]
        assert len(ours) == {2: 2, 3: 2, 4: 3, 6: 12, 7: 4}[number]
        assert {rows[name]["score"] for name in ours} == {None}
        assert {rows[name]["reason"] for name in ours} == {"the repository embeds base models of one size"}


def test_a_row_says_which_model_it_is():
    """Stand-ins by unit and parameters, the hub's by repository; rows of our own only where they are measured."""
    tiny, paper, released = plan("tiny"), plan("paper"), plan("released")
    rows = {row["row"]: row for row in table_spec(tiny, 1)["rows"]}
    assert rows["DICE-8B"]["measured"] == {"model": "stand-in 8B-dice", "params": "2.9M"}
    assert rows["Kevin-32B"]["measured"] == {}
    assert rows["SDAR-Chat-8B-sft"]["added"] is True
    assert table_spec(tiny, 1)["benchmark"] == "mini-2-cpu"
    assert table_spec(tiny, 9)["stages"][0]["measured"] == {"model": "stand-in 8B-sft", "params": "2.9M"}
    rows = {row["row"]: row for row in table_spec(released, 1)["rows"]}
    assert rows["DICE-8B"]["measured"] == {"model": "DeadlyKitt3n/DICE-8B", "params": "8B"}
    assert "SDAR-Chat-8B-sft" not in rows
    rows = {row["row"]: row for row in table_spec(paper, 3)["rows"]}
    assert rows["DICE-1.7B"]["measured"] == {"model": "1.7B-dice", "params": "1.7B"}
    assert table_spec(paper, 1)["benchmark"] == table_spec(released, 1)["benchmark"] == "kernelbench-v0.1"
    supplied = table_spec(plan("released", supplied={"CUDA-L1": "solutions.jsonl"}), 1)["rows"]
    assert {row["row"]: row for row in supplied}["CUDA-L1"]["measured"] == {"model": "supplied answers"}


def test_supplied_solutions_become_a_unit():
    supplied = plan("released", supplied={"CUDA-L1": "solutions.jsonl"})
    row = next(row for row in supplied.registry.tables[1].rows if row.row == "CUDA-L1")
    assert supplied.evidence(row).unit == "supplied-CUDA-L1"
    rows = [(item["row"], item["robust"]) for item in table_spec(supplied, 1)["rows"]]
    assert rows[2:5] == [("CUDA-L1", True), ("CUDA-L1-unchecked", False), ("Kevin-32B", True)]
    assert "CUDA-L1-unchecked" not in {item["row"] for item in table_spec(plan("tiny"), 1)["rows"]}


def test_every_checkpoint_says_which_commit_it_is_or_that_none_is_known():
    values = yaml.safe_load((EXPERIMENTS / "models.yaml").read_text())
    assert {name for name, entry in values.items() if ("hub" in entry) != ("revision" in entry)} == set()
    pinned = {entry["hub"]: entry["revision"] for entry in values.values() if entry.get("revision")}
    assert len(set(pinned.values())) == len(pinned), "two repositories never share a commit"
    assert {hub for hub, commit in pinned.items() if len(commit) != 40} == {
        "JetLM/SDAR-1.7B-Chat",
        "Gen-Verse/TraDo-8B-Instruct",
    }, "all others that are known are known in full"
    fetched = plan("paper").fetch_spec("8B-qwen3")
    assert fetched == {"hub": "Qwen/Qwen3-8B", "revision": pinned["Qwen/Qwen3-8B"]}
    assert plan("released").fetch_spec("hub-Qwen3-8B") == fetched


@pytest.mark.parametrize(
    ("revision", "sentence"),
    [
        ("main", "revision"),
        ("b968826D", "revision"),
        ("of b968826", "should match pattern"),
        ("1234567", "another revision elsewhere"),
    ],
)
def test_a_revision_that_is_no_commit_or_not_the_only_one_is_refused(tmp_path, revision, sentence):
    copy_registry(tmp_path)
    text = (tmp_path / "models.yaml").read_text()
    hub = "  hub: GSAI-ML/LLaDA-1.5\n"
    before, after = text.split(hub, 1)
    (tmp_path / "models.yaml").write_text(f"{before}{hub}  revision: '{revision}'\n{after.split(chr(10), 1)[1]}")
    with pytest.raises(DiceError, match=sentence):
        load_registry(tmp_path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("rows: [", "tables.yaml: not valid YAML"),
        ("- 1", "tables.yaml: expected a mapping"),
        (None, "tables.yaml: no such"),
    ],
)
def test_a_file_of_the_registry_that_cannot_be_read_is_one_sentence(tmp_path, text, sentence):
    copy_registry(tmp_path)
    tables = tmp_path / "tables.yaml"
    tables.unlink() if text is None else tables.write_text(text)
    with pytest.raises(DiceError, match=sentence):
        load_registry(tmp_path)


def test_scales_that_extend_each_other_in_a_circle_are_refused(tmp_path):
    (tmp_path / "common.yaml").write_text("seeds: [0]\n")
    (tmp_path / "one.yaml").write_text("extends: other\n")
    (tmp_path / "other.yaml").write_text("extends: one\n")
    with pytest.raises(DiceError, match="the scales that it extends form a circle"):
        load_study(tmp_path, "one")


def test_lineage_runs_from_dice_to_the_base():
    assert plan("tiny").lineage("8B-dice") == ["8B-dice", "8B-rl1", "8B-sft", "8B-base"]


def test_a_changed_recipe_has_another_state():
    assert plan("tiny").state("8B-sft") != plan("tiny", sft={"max_steps": 7}).state("8B-sft")


def test_start_from_needs_an_archive():
    with pytest.raises(DiceError, match="archive"):
        plan("tiny", start_from="verdicts")


def test_hours_follow_the_papers_costs():
    paper = plan("paper")
    found = hours(paper, ["8B-dice"])
    assert (found["sft"], found["rl"]) == (22.4, 120.0 + 960.0)
    assert found["verify"] == pytest.approx(0.7), "greedy: one seed of three"
    assert found["generate"] == 0.1, "250 answers of 4,096 tokens at 0.0625 a million"


def test_gigabytes_are_those_of_the_checkpoints_and_of_what_training_keeps():
    """SDAR-8B: 16 GB of 16-bit weights; weights and AdamW's two moments in fp32 are six times as much."""
    costs = job_costs(plan("paper"))
    assert costs["fetch"]["8B-base"] == (0.0, 16.0)
    assert costs["fetch"]["hub-cudaLLM-8B-4096"] == (0.0, 16.0)
    assert costs["sft"]["8B-sft"] == (22.4, 16 + 96)
    assert costs["rl"]["8B-rl1"] == (120.0, 16 + 2 * 96)
    assert costs["verify"]["8B-dice"] == (pytest.approx(0.7 / 4), 0.0)
    assert not any(gigabytes for unit in job_costs(plan("nano"))["rl"].values() for gigabytes in unit[1:])


def test_an_exam_costs_what_its_problems_cost():
    """500 composites beside the 72 problems of mini; no GPU verifies them."""
    costs = job_costs(plan("nano"))
    assert costs["generate"]["8B-dice"][0] == pytest.approx(0.03 * 72 * 1536 / 1e6)
    assert costs["generate"]["8B-dice@composites"][0] == pytest.approx(costs["generate"]["8B-dice"][0] * 500 / 72)
    assert costs["verify"]["8B-dice"][0] == pytest.approx(0.03 * 72 / 100)
    assert costs["verify"]["8B-dice@composites"][0] == 0


@pytest.mark.parametrize(
    ("unit", "hours"),
    [
        ("hub-SDAR-Chat-8B", 0.064),  # 250 x 4,096 tokens, four steps a block of four: 1.024 million of 0.0625
        ("hub-SDAR-Chat-4B", 0.032),
        ("hub-Qwen3-8B", 0.512),  # 32,768 tokens
        ("hub-LLaDA-Instruct-8B", 250 * 1024 * 1924 * 0.12 * 0.0625e-6),  # 1,024 steps over 900 + 1,024 positions
        ("hub-Dream-v0-Instruct-7B", 250 * 1024 * 1924 * 0.12 * 0.0625e-6 * 7 / 8),
        ("served-Kevin-32B", 2.048),
        ("reread-hub-Seed-Coder-Reasoning-8B", 0),
        ("recorded-Gemini-3-Pro", 0),
        ("supplied-CUDA-L1", 0),
        ("served-Gemini-3.1-Pro", 0),  # its vendor's server
        ("served-Qwen3-4B", 0),  # a server that is there already
    ],
)
def test_gpu_hours_of_answers_follow_size_length_and_steps(unit, hours):
    given = {"recorded": {"Gemini-3-Pro": "g.jsonl"}, "supplied": {"CUDA-L1": "c.jsonl"}}
    servers = {"Gemini-3.1-Pro": {}, "Qwen3-4B": {"base_url": "http://x/v1"}}
    costs = job_costs(plan("released", servers=servers, **given))
    assert (costs["generate"] | costs["serve"])[unit] == (pytest.approx(hours), 0)
    assert costs["verify"][unit][0] == pytest.approx(0.7)


def test_more_answers_cost_more():
    eight = plan("released", generate={"samples": 8})
    assert job_costs(eight)["generate"]["hub-SDAR-Chat-8B"][0] == pytest.approx(8 * 0.064)
    assert job_costs(eight)["verify"]["hub-SDAR-Chat-8B"][0] == pytest.approx(8 * 0.7)
    dozen = plan("released", suite={"levels": [3]})
    assert job_costs(dozen)["verify"]["hub-SDAR-Chat-8B"][0] == pytest.approx(0.14)


def test_problems_are_counted_as_mini_has_them():
    levels = [problem.level for problem in load_problems("mini", "cpu")]
    for asked in (1, 2, 3):
        assert problems(plan("tiny", suite={"levels": [asked]}), None) == levels.count(asked) > 0
    assert problems(plan("tiny"), None) == len(levels)


def test_merge_is_deep_and_replaces_lists():
    assert merged({"a": {"b": 1, "c": [1, 2]}}, {"a": {"c": [3]}}) == {"a": {"b": 1, "c": [3]}}


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ({"seeds": [0, 0]}, "names a seed twice"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"suite": {"levels": []}}, "levels"),
        ({"exams": None}, "'exams': Input should be a valid dictionary"),
        ({"sizes": "8B"}, "'sizes': Input should be a valid dictionary"),
        ({"suite": {"version": "mini-7-cpu"}}, "mini has no 'mini-7-cpu'"),
        ({"start_from": "verdicts", "archive": "results"}, "is where the results go"),
        ({"suite": {"sorce": "mini"}}, r"'suite.sorce': Unexpected keyword argument\.$"),
    ],
)
def test_settings_that_would_mislead_are_refused(override, sentence):
    with pytest.raises(DiceError, match=sentence):
        load_study(EXPERIMENTS / "config", "tiny", override)


def test_a_misspelt_row_of_supplied_answers_is_refused():
    study = load_study(EXPERIMENTS / "config", "tiny", {"supplied": {"CUDA-L2": "answers.jsonl"}})
    with pytest.raises(DiceError, match="no table has a row of 'CUDA-L2'"):
        Plan(study, load_registry(EXPERIMENTS))


def test_a_profile_named_by_an_abbreviated_flag_is_checked():
    with pytest.raises(DiceError, match="no such profile"):
        check_command_line(["snakemake", "--workflow-prof", "profiles/nanno"], ROOT)
    check_command_line(["snakemake", "--printshellcmds", "tables"], ROOT)


@pytest.mark.parametrize(
    ("words", "dry"), [("-n", True), ("-np tables", True), ("--dryrun", True), ("--nolock", False), ("-j 2", False)]
)
def test_a_dry_run_is_recognised(words, dry):
    assert is_dry_run(["snakemake", *words.split()]) is dry


def test_every_model_whose_weights_are_published_is_measured_at_released():
    """By our own engine or a local vLLM, once WeDLM's terms are confirmed; prompts have the checkpoint's own markup."""
    released = plan("released", accept=["tencent/WeDLM-8B-Instruct"])
    units = {
        row.model: released.evidence(row).unit
        for number in (1, 2, 3)
        for row in released.registry.tables[number].rows
        if row.model is not None
    }
    assert {
        model for model, unit in units.items() if unit is None and not released.registry.models[model].withdrawn
    } == {
        *("CUDA-L1", "Gemini-3.1-Pro", "Mercury-2.5"),
    }
    served = {unit.removeprefix("served-") for unit in units.values() if unit and unit.startswith("served-")}
    assert served == {
        *(
            "Kevin-32B",
            "Llama-3.2-Instruct-3B",
            "Phi-4-Mini-Reasoning-4B",
            "Gemma-2-It-2B",
            "Deepseek-Coder-Instruct-1.3B",
        ),
    }
    for unit in filter(None, units.values()):
        if not unit.startswith("hub-"):
            continue
        spec = released.generate_spec(unit, 0)
        config = parse_config(GenerateConfig, spec, unit)
        entry = released.registry.models[unit.removeprefix("hub-")]
        assert config.family == entry.family
        ours = entry.family in ("sdar", "qwen3")
        assert (config.chat, config.prompts) == (
            ("prompts", released.prompts) if ours else ("checkpoint", released.messages)
        ), unit
        assert entry.family in FAMILIES
        sampler = FAMILIES[entry.family].sampler
        unread = {"block_diffusion", "autoregressive", "llada", "dream", "window"} - {sampler}
        assert not unread & set(entry.decoding), "settings of another sampler would be silently ignored"


def test_decoding_is_that_of_the_paper():
    models = plan("released").registry.models
    temperatures = {"Dream-v0-Instruct-7B": 0.2, "Dream-Coder-v0-Instruct-7B": 0.1, "DiffuCoder-Instruct-7B": 0.3}
    for name, temperature in temperatures.items():
        decoding = models[name].decoding
        assert decoding["dream"]["sampling"]["temperature"] == temperature
        assert (decoding["max_new_tokens"], decoding["dream"]["steps"]) == (1024, 1024)
    for name, length in (("LLaDA-Instruct-8B", 1024), ("LLaDA-1.5-8B", 1024), ("LLaDA-Instruct-8B-4096", 4096)):
        decoding = models[name].decoding
        assert (decoding["max_new_tokens"], decoding["llada"]["steps"], decoding["llada"]["block_size"]) == (
            length,
            length,
            32,
        )
    released = plan("released", accept=["tencent/WeDLM-8B-Instruct"])
    drawn = {*temperatures, "WeDLM-8B", "Qwen2.5-Coder-Instruct-7B", "Seed-Coder-Reasoning-8B", "Qwen3-8B"}
    fixed = {"LLaDA-Instruct-8B", "Stable-DiffCoder-8B", "Deepseek-Coder-Instruct-v1.5-7B", "SDAR-Chat-8B", "DICE-8B"}
    assert {name for name in drawn | fixed if released.is_greedy(f"hub-{name}")} == fixed
