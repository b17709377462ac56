"""The paper's tables as the project has them: its numbers, what each row rests on, how its own models decode."""

from __future__ import annotations

import csv
import hashlib
import re

import pytest
from plans import EXPERIMENTS, copy_registry, plan

from dice.config import parse_config
from dice.decoding.block_diffusion import BlockDiffusionConfig
from dice.decoding.dream import DreamConfig
from dice.decoding.llada import LladaConfig
from dice.decoding.window import WindowConfig
from dice.errors import DiceError
from dice.model.families import FAMILIES
from dice.study.registry import TableRow, load_registry
from dice.study.reports import check_inputs, check_spec, figure_spec, sizes, table_inputs, table_spec


def reported(number: int) -> list[dict[str, str]]:
    return list(csv.DictReader((EXPERIMENTS / "reported" / f"table{number}.csv").open()))


PAPERS_NUMBERS = {
    1: "76db41b17e35dd71",
    2: "209b5e66743ae294",
    3: "7ec75607b49a5028",
    4: "2fc645b876df964c",
    5: "29c9ae5a340a561f",
    6: "5bca0166ff8d98fb",
    7: "932b8d38e61c7467",
    8: "fbe2c3bb7150e678",
    9: "00b754ee39d4a000",
    10: "de8276dd2f357b48",
    11: "5d6107f73dec7372",
    12: "606d61dc2516e882",
}
"""Of each table, as it was read from the paper's text (arXiv 2602.11715v2): the first digits of the sha256 of its CSV, in
the paper's order of rows and columns and without our names of the rows."""


@pytest.mark.parametrize("number", range(1, 13))
def test_no_number_of_the_paper_was_changed(number):
    lines = (EXPERIMENTS / "reported" / f"table{number}.csv").read_text().splitlines()
    if number not in (9, 12):  # whose rows are named by the paper's own column
        lines = [line.partition(",")[2] for line in lines]
    text = "".join(f"{line}\n" for line in lines)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == PAPERS_NUMBERS[number]


def test_the_papers_tables_agree_where_they_repeat_a_row():
    """Against each other: Tables 6, 8, 10 and 11 print rows of Tables 1 to 3 again, Table 7 those of Table 6 and 1 to 3."""

    def numbers(row):
        return [value for name, value in row.items() if name[:2] in ("l1", "l2", "l3")]

    main = {(row["model"], row["params"]): numbers(row) for number in (1, 2, 3) for row in reported(number)}
    tuned = {row["params"]: numbers(row) for row in reported(6) if row["strategy"] == "sft"}
    for row in reported(6):
        if (model := {"base": "SDAR-Chat", "dice": "DICE"}.get(row["strategy"])) is not None:
            assert numbers(row) == main[model, row["params"]]
    for row in reported(7):
        if row["sft"] == "no":
            assert numbers(row) == main[row["model"], row["params"]]
        elif row["model"] == "SDAR-Chat":
            assert numbers(row) == tuned[row["params"]]
    again = [row for row in reported(8) if row["robust_check"] == "yes"] + reported(10)[::2] + reported(11)[1:]
    eights = {model: values for (model, params), values in main.items() if params in ("8B", "7B", "-")}
    assert all(numbers(row) == eights[row["model"]] for row in again)
    assert [numbers(reported(number)[row]) for number, row in ((4, 1), (5, 2))] == [tuned["4B"], tuned["8B"]]


def test_each_row_rests_on_what_the_paper_says_of_it():
    """Against the paper's own columns (model, size, check, tokens, data), so that no two rows can change places."""
    registry = load_registry(EXPERIMENTS)
    for number in (1, 2, 3, 8, 10, 11):
        papers = {row["row"]: row for row in reported(number)}
        rows = [row for row in registry.tables[number].rows if not row.added]
        assert [row.row for row in rows] == list(papers)
        assert not {row.row for row in registry.tables[number].rows if row.added} & set(papers)
        for row in rows:
            assert row.model is not None
            paper, entry = papers[row.row], registry.models[row.model]
            assert row.robust == (paper.get("robust_check") != "no")
            if "max_new_tokens" in paper:
                assert entry.decoding["max_new_tokens"] == int(paper["max_new_tokens"])
            name = row.model.removesuffix("-4096")
            size = name.removeprefix(paper["model"]).removeprefix("-")
            assert name.startswith(paper["model"])
            assert size == paper.get("params", size) or paper["params"] in ("-", "671B")
            assert re.fullmatch(r"([\d.]+B)?", size), "LLaDA-1.5 is not a LLaDA of another size"
    strategies = {
        "base": "base", "sft": "sft", "sft+rl_baseline": "rl_baseline", "sft+data_scheduling": "rl_scheduling",
        "sft+kernel_infilling": "rl_infilling", "dice": "dice",
    }  # fmt: skip
    recipe = {
        ("SDAR-Chat", "no"): "base",
        ("SDAR-Chat", "yes"): "sft",
        ("Qwen3", "no"): "qwen3",
        ("Qwen3", "yes"): "qwen3_sft",
    }
    expected = {
        4: {"1.5": "4B-sft_threshold15", "2.0": "4B-sft", "2.5": "4B-sft_threshold25"},
        5: {"cudaLLM": "8B-sft_cudallm", "ConCuR": "8B-sft_concur", "CuKe": "8B-sft"},
    }
    for number, unit_of in (
        (4, lambda paper: expected[4][paper["speedup_threshold"]]),
        (5, lambda paper: expected[5][paper["dataset"]]),
        (6, lambda paper: f"{paper['params']}-{strategies[paper['strategy']]}"),
        (7, lambda paper: f"{paper['params']}-{recipe[paper['model'], paper['sft']]}"),
    ):
        units = {row.row: row.unit for row in registry.tables[number].rows if not row.added}
        assert units == {row["row"]: unit_of(row) for row in reported(number)}
    assert set(registry.tables[9].stages) == {row["stage"] for row in reported(9)}


@pytest.mark.parametrize("scale", ["released", "paper"])
def test_the_papers_block_diffusion_models_decode_as_the_paper_says(scale):
    """A.4.4: static, blocks of 4, one token a forward, top-k 1, top-p 1, temperature 1, at most 4,096 new tokens."""
    one = plan(scale)
    units = [unit for unit in one.units if one.family(unit) == "sdar"]
    assert len(units) == {"released": 8, "paper": 3 * 6 + 4 + 2}[scale]
    for unit in units:
        spec = one.generate_spec(unit, 0)
        decoding = spec["block_diffusion"]
        assert (decoding["strategy"], decoding["block_size"], decoding["denoising_steps"]) == ("static", 4, 4), unit
        assert decoding["sampling"] == {"temperature": 1.0, "top_k": 1, "top_p": 1.0}, unit
        assert spec["max_new_tokens"] == 4096, unit


def test_released_checkpoints_fill_the_rows_that_nothing_is_trained_for():
    """At `released`: bases and DICE of Tables 6 and 7, Figures 2 and 6; fine-tuned variants were not released."""
    released = plan("released")
    for number, rows in (
        (6, {f"{size}-{name}": f"hub-{model}-{size}" for size in ("8B", "4B", "1.7B")
             for name, model in (("base", "SDAR-Chat"), ("dice", "DICE"))}),
        (7, {f"{model}-{size}": f"hub-{model}-{size}" for size in ("8B", "4B", "1.7B") for model in ("SDAR-Chat", "Qwen3")}),
    ):  # fmt: skip
        evidence = {row.row: released.evidence(row) for row in released.registry.tables[number].rows}
        assert {row: found.unit for row, found in evidence.items() if found.unit} == rows
        assert {found.reason for found in evidence.values() if not found.unit} == {"not part of the scale released"}
    assert figure_spec(released, 2)["generations"] == "results/released/generations/hub-DICE-8B/seed0.jsonl"
    assert set(figure_spec(released, 6)["scores"]) == {"hub-DICE-1.7B", "hub-DICE-4B", "hub-DICE-8B"}
    assert figure_spec(released, 1)["histories"] == {}
    tiny = plan("tiny", hub_rows=True)
    assert tiny.evidence(tiny.registry.tables[6].rows[0]).unit == "8B-base", (
        "what is trained comes before what was released"
    )
    assert tiny.evidence(next(row for row in tiny.registry.tables[6].rows if row.row == "8B-dice")).unit == "8B-dice"


def test_data_are_counted_where_the_run_has_them():
    tiny = plan("tiny")
    dice = next(row for row in table_spec(tiny, 11)["rows"] if row["row"] == "DICE-4096")
    infilling, whole = "results/data/rl_infilling.infilling.jsonl", "results/data/rl_end_to_end.jsonl"
    assert dice["sizes"] == {"sft_samples": ["results/data/cuke.jsonl"], "rl_samples": [whole, infilling]}
    assert dice["settings"] == {"max_new_tokens": 640}
    assert {whole, infilling} < set(table_inputs(tiny, 11))
    assert not any("data/" in path for path in table_inputs(tiny, 1)), "a table without these columns reads no data"
    assert sizes(plan("tiny", start_from="verdicts", archive="old"), "8B-dice", ("rl_samples",)) == {}
    row = next(row for row in table_spec(plan("released"), 11)["rows"] if row["row"] == "DICE-4096")
    assert (row["sizes"], row["settings"]) == ({}, {"max_new_tokens": 4096})


@pytest.mark.parametrize("scale", ["tiny", "smoke", "nano", "released", "paper"])
def test_greedy_answers_are_made_once_whatever_the_seeds(scale):
    """Against the decoder's own word on what is greedy; a checkpoint of the hub that is told nothing may be sampled."""
    one = plan(scale, seeds=[0, 1, 2])
    for unit in one.units:
        if unit.startswith("reread-"):
            assert one.seeds(unit) == one.seeds(unit.removeprefix("reread-"))
            continue
        if unit.startswith("served-"):
            assert one.seeds(unit) == ([0] if unit == "served-Deepseek-Coder-Instruct-1.3B" else [0, 1, 2]), unit
            continue
        spec = one.generate_spec(unit, 0)
        decodings = {
            "block_diffusion": BlockDiffusionConfig,
            "llada": LladaConfig,
            "dream": DreamConfig,
            "window": WindowConfig,
        }
        family = one.family(unit)
        assert family in FAMILIES
        sampler = FAMILIES[family].sampler
        if sampler in decodings:
            greedy = parse_config(decodings[sampler], spec.get(sampler, {}), "test").sampling.greedy
        elif "Deepseek" in unit:
            greedy = True  # as the authors' script
        else:
            assert "autoregressive" not in spec, "the paper's default configuration is the checkpoint's"
            greedy = scale not in ("released", "paper")
        several_runs = len(one.runs(unit)) > 1
        assert one.seeds(unit) == ([0] if greedy and not several_runs else [0, 1, 2]), unit
        assert several_runs == (scale == "nano" and one.is_trained(unit) and one.recipe(unit) is not None)
        assert len(one.verdicts(unit)) == len(one.seeds(unit))


def test_a_model_that_samples_keeps_its_seeds():
    sampled = {"block_diffusion": {"sampling": {"temperature": 1.0, "top_k": 0}}}
    assert plan("tiny", seeds=[4, 5], generate=sampled).seeds("8B-dice") == [4, 5]
    assert plan("tiny", seeds=[4, 5]).seeds("8B-dice") == [4]
    told = {"autoregressive": {"sampling": {"temperature": 0.6}}}
    assert plan("nano", seeds=[4, 5], generate=told).seeds("8B-qwen3") == [4, 5]


def test_each_seed_has_its_own_training_run_but_there_is_one_base():
    one = plan("tiny", seeds=[3, 5], train_each_seed=True)
    assert one.runs("8B-dice") == ["8B-dice", "8B-dice.run5"]
    assert one.lineage("8B-dice.run5") == ["8B-dice.run5", "8B-rl1.run5", "8B-sft.run5", "8B-base"]
    assert (one.runs("8B-base"), one.seeds("8B-base")) == (["8B-base"], [3])
    assert [one.training_spec(unit)["seed"] for unit in ("8B-sft", "8B-sft.run5")] == [3, 5]
    assert one.training_spec("8B-rl1.run5")["model"] == "results/models/8B-sft.run5"
    assert one.training_spec("8B-sft.run5")["model"] == "results/models/8B-base"
    for unit in ("8B-dice", "8B-dice@composites"):
        assert one.seeds(unit) == [3, 5], "though its decoding is greedy"
        assert [one.generate_spec(unit, seed)["model"] for seed in (3, 5)] == [
            "results/models/8B-dice", "results/models/8B-dice.run5"
        ]  # fmt: skip
    assert {"8B-rl1", "8B-rl1.run5", "8B-dice", "8B-dice.run5"} == set(one.models_by("rl")) & {
        "8B-rl1", "8B-rl1.run3", "8B-rl1.run5", "8B-dice", "8B-dice.run3", "8B-dice.run5", "8B-base.run5"
    }  # fmt: skip
    assert "8B-base.run5" not in one.models
    alone = plan("tiny", seeds=[3, 5])
    assert (alone.runs("8B-dice"), alone.seeds("8B-dice"), "seed" in alone.training_spec("8B-sft")) == (
        ["8B-dice"], [3], False
    )  # fmt: skip


def test_a_recipe_that_is_left_out_takes_what_is_trained_from_it_along():
    one = plan("tiny", left_out={"rl1": "no time"})
    assert not one.is_trained("8B-rl1")
    assert not one.is_trained("8B-dice")
    assert one.is_trained("8B-sft")
    assert [one.evidence(TableRow(row=unit, unit=unit)).reason for unit in ("8B-rl1", "8B-dice")] == [
        "no time",
        "no time",
    ]


def test_the_sampling_of_a_base_is_that_of_what_is_trained_from_it():
    assert plan("paper").seeds("8B-qwen3_sft") == [0, 1, 2], "it inherits the sampling of the base that it came from"


@pytest.mark.parametrize("scale", ["released", "paper"])
def test_prompts_are_kernelbenchs_text(scale):
    """The paper's A.1.2: of its version 0.1 (ScalingIntelligence/KernelBench at 88df56b), which the authors' copy equals."""
    one = plan(scale)
    folder = f"results/{scale}/data/kernelbench"
    prompt = one.prompts_spec()["prompt"]
    assert (prompt["style"], prompt["kernelbench_checkout"]) == ("kernelbench", folder)
    assert prompt["kernelbench_sha256"].startswith("6be9034d2f26babd")
    if scale == "paper":
        assert one.training_spec("8B-dice")["prompt"] == one.training_spec("8B-sft")["prompt"] == prompt
        assert folder in one.training_inputs("8B-rl1")
    own = plan(scale, suite={"source": "checkouts/KernelBench"})
    assert own.prompts_spec()["prompt"]["kernelbench_checkout"] == "checkouts/KernelBench"
    assert plan("tiny").kernelbench is None


def test_rows_are_compared_where_both_are_measured():
    """The paper's claims: each strategy against the step before it, DICE against the RL baseline."""
    found = {(pair["table"], pair["row"]): pair["against"] for pair in check_spec(plan("paper"))["pairs"]}
    assert {row: against for (table, row), against in found.items() if table == "table6" and row.startswith("8B")} == {
        "8B-sft": "8B-base",
        "8B-sft+rl_baseline": "8B-sft",
        "8B-sft+data_scheduling": "8B-sft",
        "8B-sft+kernel_infilling": "8B-sft",
        "8B-dice": "8B-sft+rl_baseline",
    }
    assert ("table1", "DICE-8B") not in found
    tiny = plan("tiny")
    assert [pair["row"] for pair in check_spec(tiny)["pairs"] if pair["table"] == "table1"] == [
        "Qwen3-8B",
        "Qwen3-8B-sft",
        "SDAR-Chat-8B",
        "SDAR-Chat-8B-sft",
    ]
    assert {"results/scores/8B-sft.json", "results/table1.csv"} < set(check_inputs(tiny))


def test_a_row_to_compare_with_that_is_not_there_is_refused(tmp_path):
    copy_registry(tmp_path)
    text = (tmp_path / "tables.yaml").read_text()
    (tmp_path / "tables.yaml").write_text(text.replace("against: DICE-8B", "against: DICE-9B"))
    with pytest.raises(DiceError, match=r"table 1: there is no row 'DICE-9B' \(against\)"):
        load_registry(tmp_path)
