"""Which rule makes a model, and that each stage takes what the plan tells it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import stage_specs
from plans import EXPERIMENTS, copy_registry, plan
from stage_specs import specs

from dice.config import parse_config, to_spec
from dice.decoding.memory import GIB, weight_bytes, working_bytes
from dice.errors import DiceError
from dice.model.transformer import ModelConfig
from dice.study.config import check_schema, scales
from dice.study.costs import job_seconds, licences, problems
from dice.study.memory import gpu_memory
from dice.study.plan import Plan
from dice.study.registry import TableRow, load_registry
from dice.study.reports import table_inputs, table_spec
from dice.study.units import ModelRule
from dice.training.rl_config import RolloutConfig

SCHEMA = "docs/schema/study.schema.json"
RULES: tuple[ModelRule, ...] = ("base", "fetch", "sft", "rl", "archived_model")


def of_8b(one: Plan) -> dict[str, set[str]]:
    """Rule -> units of the largest size whose model it makes."""
    made = {rule: {unit for unit in one.models_by(rule) if unit.startswith("8B-")} for rule in RULES}
    return {rule: units for rule, units in made.items() if units}


def test_a_given_checkpoint_is_copied_unless_all_is_made_from_scratch():
    tuned = {f"8B-{name}" for name in ("sft", "sft_cudallm", "sft_concur", "qwen3_sft")}
    trained = {
        f"8B-{name}" for name in ("rl1", "dice", "rl_baseline", "rl_scheduling", "rl1_unscheduled", "rl_infilling")
    }
    assert of_8b(plan("tiny")) == {"base": {"8B-base", "8B-qwen3"}, "sft": tuned, "rl": trained}
    assert of_8b(plan("tiny", from_scratch=True)) == {"sft": tuned | {"8B-base", "8B-qwen3"}, "rl": trained}


def test_a_base_of_the_hub_is_fetched_as_released_models_are():
    paper = plan("paper")
    assert of_8b(paper)["fetch"] == {"8B-base", "8B-qwen3"}
    released = plan("released")
    assert set(released.models) == set(released.models_by("fetch"))
    assert "hub-Kevin-32B" in released.models


@pytest.mark.parametrize(
    ("start", "made"),
    [
        ("scratch", {"checkpoints", "generations", "verdicts"}),
        ("checkpoints", {"generations", "verdicts"}),
        ("generations", {"verdicts"}),
        ("verdicts", set()),
    ],
)
def test_what_a_run_makes_itself_and_what_the_archive_has(start, made):
    one = plan("tiny", start_from=start, archive="old")
    assert {evidence for evidence in ("checkpoints", "generations", "verdicts") if one.makes(evidence)} == made
    assert (set(of_8b(one)) == {"archived_model"}) == ("checkpoints" not in made)


@pytest.mark.parametrize("scale", scales(EXPERIMENTS / "config"))
def test_each_stage_takes_what_the_plan_tells_it(scale):
    servers = {"Gemini-3.1-Pro": {"prices": {"prompt": 2, "completion": 12}, "budget": {"money": 40}}, "Kevin-32B": {}}
    recorded = {"Gemini-3-Pro": "gemini.jsonl"}
    one = plan(scale, supplied={"CUDA-L1": "solutions.jsonl"}, servers=servers, recorded=recorded)
    outs = []
    for kind, spec in specs(one):
        outs.append(to_spec(parse_config(kind, spec, f"{scale} {kind.__name__}")).get("out"))
    made = [out for out in outs if out not in (None, "x")]
    assert all(out.startswith(f"{one.study.results}/") for out in made)
    assert len(set(made)) == len(made), "two jobs write the same file"


def test_every_config_that_a_rule_hands_to_a_stage_is_parsed_above():
    rules = "".join(path.read_text() for path in sorted((EXPERIMENTS / "rules").glob("*.smk")))
    handed = set(re.findall(r"\b(\w+_spec)\(", rules))
    parsed = set(re.findall(r"\b(\w+_spec)\(", Path(stage_specs.__file__).read_text()))
    assert len(handed) > 20
    assert handed <= parsed


def test_who_answers_for_a_row():
    """A file of the user's, a server that is named, our own engine, a local vLLM; else the row says why not."""

    def evidence(one, model):
        row = next(row for table in one.registry.tables.values() for row in table.rows if row.model == model)
        return one.evidence(row)

    bare = plan("released")
    assert evidence(bare, "Gemma-2-It-2B").unit == "served-Gemma-2-It-2B"
    assert evidence(bare, "Qwen3-8B").unit == "hub-Qwen3-8B"
    gone = evidence(bare, "Gemini-3-Pro")
    assert (gone.unit, gone.withdrawn) == (None, True)
    assert "shut down on 2026-03-09" in gone.reason
    assert not evidence(bare, "CUDA-L1").withdrawn
    assert not evidence(plan("released", local_rows=False), "Gemma-2-It-2B").withdrawn
    assert "local vLLM" in evidence(plan("released", local_rows=False), "Gemma-2-It-2B").reason
    assert evidence(plan("released", hub_rows=False), "Gemma-2-It-2B").unit is None
    told = plan("tiny", servers={"Qwen3-8B": {"base_url": "http://x/v1"}}, recorded={"Gemini-3-Pro": "g.jsonl"})
    assert evidence(told, "Qwen3-8B").unit == "served-Qwen3-8B"
    assert evidence(told, "Gemini-3-Pro").unit == "recorded-Gemini-3-Pro"
    with pytest.raises(DiceError, match=r"recorded: no table has a row of 'Gemini-4'"):
        plan("tiny", recorded={"Gemini-4": "g.jsonl"})
    with pytest.raises(DiceError, match=r"servers\.Claude-Sonnet-4: .*needs a base_url"):
        plan("tiny", servers={"Claude-Sonnet-4": {}})
    with pytest.raises(DiceError, match="'ky' was unexpected"):
        check_schema(plan("tiny", servers={"Qwen3-8B": {"ky": "KEY"}}).study, EXPERIMENTS.parent / SCHEMA)


def test_our_own_engine_decodes_a_row_of_a_server_where_the_study_says_so():
    row = TableRow(row="Kevin-32B", model="Kevin-32B")
    assert plan("released").evidence(row).unit == "served-Kevin-32B"
    one = plan("released", own_engine={"Kevin-32B": {"memory_gib": 120, "max_new_tokens": 16384}})
    assert one.evidence(row).unit == "hub-Kevin-32B"
    spec = one.generate_spec("hub-Kevin-32B", 0)
    assert (spec["family"], spec["chat"]) == ("qwen2", "checkpoint")
    assert (spec["memory_gib"], spec["max_new_tokens"]) == (120, 16384)
    assert "served-Kevin-32B" not in one.units
    assert one.generate_spec("hub-Qwen3-8B", 0)["memory_gib"] == 73, "of that row alone"
    assert check_schema(one.study, EXPERIMENTS.parent / SCHEMA) is None
    assert plan("released", own_engine={"Kevin-32B": {}}, hub_rows=False).evidence(row).unit is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"own_engine": {"Gemma-2-It-2B": {}}}, r"own_engine\.Gemma-2-It-2B: our engine decodes checkpoints of sdar, "),
        ({"own_engine": {"CUDA-L1": {}}}, r"own_engine\.CUDA-L1: our engine decodes checkpoints of sdar, "),
        ({"own_engine": {"Kevin-33B": {}}}, "own_engine: no table has a row of 'Kevin-33B'"),
        ({"own_engine": {"Kevin-32B": {}}, "servers": {"Kevin-32B": {}}}, "`servers` names it, too"),
    ],
)
def test_a_row_that_our_own_engine_cannot_take_is_refused(given, sentence):
    with pytest.raises(DiceError, match=sentence):
        plan("released", **given)


def test_a_misspelt_setting_of_our_own_engine_is_refused():
    with pytest.raises(DiceError, match="'memory' was unexpected"):
        check_schema(plan("released", own_engine={"Kevin-32B": {"memory": 1}}).study, EXPERIMENTS.parent / SCHEMA)


def test_terms_are_confirmed_by_name(tmp_path):
    """Whatever else the row lacks; and no repository is without a line on its licence."""
    entry = load_registry(EXPERIMENTS).hub["tencent/WeDLM-8B-Instruct"]
    assert "European Union" in (entry.terms or "")
    row = TableRow(row="WeDLM-8B", model="WeDLM-8B")
    assert "confirm it (accept)" in plan("released").evidence(row).reason
    assert "accept" not in plan("released", accept=["tencent/WeDLM-8B-Instruct"]).evidence(row).reason
    copy_registry(tmp_path)
    hub = tmp_path / "hub.yaml"
    hub.write_text(hub.read_text().replace("Qwen/Qwen3-8B:", "Qwen/Qwen3-9B:"))
    with pytest.raises(DiceError, match=r"Qwen3-8B: hub\.yaml does not say under which licence Qwen/Qwen3-8B is"):
        load_registry(tmp_path)


def test_the_plan_has_the_licence_of_what_is_fetched():
    assert licences(plan("released"))["hub-Gemma-2-It-2B"] == "Gemma terms, gated, unchecked"
    assert licences(plan("paper"))["8B-base"] == "MIT (its code)"


EIGHT = 8_190_735_360
"""Parameters of SDAR-8B and Qwen3-8B."""
SLOT = 2 * 36 * 8 * 128 * 2
"""Bytes of the cache that one of their tokens takes."""


def test_gpu_memory_is_that_of_the_row():
    """Weights, cache and working memory at its lengths."""
    memory = gpu_memory(plan("released"))
    of = memory["generate"]
    # answers of 4,096 tokens to 249 prompts of 900: 64 slots of 4,996, one for padding rows; a prefill's activations
    expected = 2 * EIGHT + 65 * 4996 * SLOT + 16_384 * 319_488
    assert of["hub-DICE-8B"] == (pytest.approx(expected / GIB), False)
    assert of["hub-Qwen3-8B"].gib > of["hub-cudaLLM-8B-4096"].gib, "longer answers"
    assert all(found.gib <= 73 for found in of.values()), "memory_gib of the scale"
    # 8 canvases of 1,924 positions of 442,368 bytes, 256 masks' logits with 13 copies in fp32, no cache
    llada = 2 * 8_015_581_184 + 8 * 1924 * 442_368 + 256 * 126_464 * 56
    assert of["hub-LLaDA-Instruct-8B"] == (pytest.approx(llada / GIB), False)
    assert not any(found.weights_alone for rule in memory.values() for found in rule.values())
    assert "reread-hub-Seed-Coder-Reasoning-8B" not in of


def test_a_checkpoint_that_is_here_says_its_geometry(tmp_path):
    one = plan("released", results=str(tmp_path))
    folder = tmp_path / "models" / "hub-Seed-Coder-Reasoning-8B"
    folder.mkdir(parents=True)
    fields = {
        "model_type": "llama", "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 2, "rope_theta": 1e4, "rms_norm_eps": 1e-6,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(fields))
    found = gpu_memory(one)["generate"]["hub-Seed-Coder-Reasoning-8B"]
    assert not found.weights_alone
    assert found.gib < 2, "another than 8B"


def test_what_fits_no_gpu_is_said_with_one_answer_at_a_time():
    small = gpu_memory(plan("released", generate={"memory_gib": 12}))["generate"]["hub-DICE-8B"]
    longest = -(-(6522 + 4096) // 4) * 4
    assert small.gib == pytest.approx((2 * EIGHT + 2 * longest * SLOT + 16_384 * 319_488) / GIB)
    assert small.gib > 12


def test_gpu_memory_of_training_is_what_the_stages_check():
    """8 GPUs: fine-tuning by ZeRO-2 (docs/measurements/fine-tuning.md has 38.7 with prompts without a noised copy)."""
    memory = gpu_memory(plan("paper"))
    state = 4 * EIGHT + 800_000_000
    rows = 12_288  # window twice; inputs of 36 layers, and one layer worked on or the head's logits and gradients
    head = 1024 * 151_936 * 16 + 2 * 151_936 * 4096 * 2
    assert memory["sft"]["8B-sft"].gib == pytest.approx((state + rows * 2 * 36 * 4096 + head) / GIB)
    assert 65 < memory["rl"]["8B-dice"].gib < 73
    assert memory["rl"]["8B-dice"].gib > memory["rl"]["4B-dice"].gib


def test_what_a_served_row_asks():
    one = plan("released", vllm="env/bin/vllm", servers={"Phi-4-Mini-Reasoning-4B": {"local": {"arguments": ["--x"]}}})
    spec = one.ask_spec("served-Phi-4-Mini-Reasoning-4B", 2)
    checkpoint = "results/released/models/hub-Phi-4-Mini-Reasoning-4B"
    assert spec["server"] == {
        "model": "Phi-4-Mini-Reasoning-4B",
        "temperature": 0.8,
        "top_p": 0.95,
        "local": {"checkpoint": checkpoint, "command": ["env/bin/vllm"], "arguments": ["--x"]},
    }
    assert (spec["max_new_tokens"], spec["seed"]) == (32768, 2)
    assert one.models_by("fetch").count("hub-Phi-4-Mini-Reasoning-4B") == 1
    assert one.messages_spec()["prompt"]["chat"] == "plain"
    paper = plan("paper")
    assert len(paper.seeds("served-Phi-4-Mini-Reasoning-4B")) == 3
    assert len(paper.seeds("served-Deepseek-Coder-Instruct-1.3B")) == 1, "greedy"


def test_a_server_is_asked_as_the_suite_says():
    suite = {"source": "mini", "version": "mini-2-cpu", "generate": {"samples": 4, "max_new_tokens": 99}}
    one = plan("released", suite=suite, generate={"samples": 2})
    for spec in (one.ask_spec("served-Phi-4-Mini-Reasoning-4B", 0), one.generate_spec("hub-Qwen3-8B", 0)):
        assert (spec["samples"], spec["max_new_tokens"]) == (4, 99)


def test_a_successor_is_a_row_of_its_own():
    """It is in the table once it is asked for; under the paper's name only the paper's model counts."""
    assert "Gemini-3.1-Pro" not in [row["row"] for row in table_spec(plan("tiny"), 1)["rows"]]
    one = plan("tiny", servers={"Gemini-3.1-Pro": {}}, recorded={"Gemini-3-Pro": "g.jsonl"})
    rows = {row["row"]: row for row in table_spec(one, 1)["rows"]}
    assert rows["Gemini-3.1-Pro"]["added"]
    assert not rows["Gemini-3-Pro"]["added"]
    assert one.ask_spec("served-Gemini-3.1-Pro", 0)["server"]["key"] == "GEMINI_API_KEY"
    assert one.ask_spec("recorded-Gemini-3-Pro", 0)["models"] == ["gemini-3-pro-preview"]
    assert rows["Claude-Sonnet-4"]["withdrawn"]


def test_shards_share_the_answers_of_one_file():
    one = plan("released", shards=2)
    first, second = (one.verify_spec("hub-Qwen3-8B", 1, shard) for shard in (0, 1))
    assert first["candidates"] == second["candidates"] == "results/released/generations/hub-Qwen3-8B/seed1.jsonl"
    assert [(spec["shard"], spec["shards"]) for spec in (first, second)] == [(0, 2), (1, 2)]
    assert first["out"] == "results/released/verdicts/hub-Qwen3-8B/seed1.shard0.jsonl"


@pytest.mark.parametrize("scale", scales(EXPERIMENTS / "config"))
def test_a_verification_job_is_worth_its_start(scale):
    """A tenth of an hour at least, for it starts a verifier; where that is more than all verdicts take, one job."""
    one = plan(scale)
    if one.study.stand_ins is not None:
        return  # jobs of seconds, as many as at the scale that it rehearses
    hours = one.study.costs.verify * problems(one, None) / 100
    assert one.study.shards == 1 or hours / one.study.shards >= 0.1


def test_expected_seconds_are_those_of_a_job():
    """GPU-hours of a training run over its GPUs, hours of verification over the shards."""
    paper = job_seconds(plan("paper"))
    assert paper["sft"] == pytest.approx(22.4 / 8 * 3600)
    assert paper["verify"] == pytest.approx(0.7 / 4 * 3600)
    assert "synth" not in paper


GEOMETRY = {"8B": (4096, 12288, 36, 32, False), "4B": (2560, 9728, 36, 32, True), "1.7B": (2048, 6144, 28, 16, True)}
"""Size -> width, MLP, layers, query heads, tied, of SDAR and Qwen3; 8 key-value heads of 128 and 151,936 tokens each."""
LONGEST_PROMPT = 2560
"""Tokens of an infilling problem of the authors' file, at most; their end-to-end programs take 1,130."""


@pytest.mark.parametrize("size", GEOMETRY)
def test_answers_of_reinforcement_learning_fit_a_gpu_of_80_gb_beside_what_is_trained(size):
    """The sampler's copy, its cache and work, and this GPU's share of weights (ZeRO-3), gradients, masters and moments."""
    one = plan("paper")
    spec = one.training_spec(f"{size}-dice")
    rollout = parse_config(RolloutConfig, spec.get("rollout", {}), "test")
    width, mlp, layers, heads, tied = GEOMETRY[size]
    geometry = ModelConfig(
        vocab_size=151936,
        hidden_size=width,
        intermediate_size=mlp,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=8,
        head_dim=128,
        tie_word_embeddings=tied,
    )
    parameters = weight_bytes(geometry, 1)
    shared = {"zero2": 16, "zero3": 18}[spec["engine"]] * parameters / one.study.gpus
    whole = {"zero2": 2 + 2, "zero3": 2}[spec["engine"]] * parameters
    length = LONGEST_PROMPT + rollout.max_new_tokens
    cache = 2 * 2 * layers * 8 * 128 * length * (rollout.max_batch + 1)
    work = working_bytes(
        geometry,
        rollout.max_batch,
        length,
        LONGEST_PROMPT,
        2,
        block=4,
        sampling=rollout.decoding.sampling,
        fast=True,
    )
    assert shared + whole + cache + work < one.study.generate["memory_gib"] * GIB
    assert rollout.max_batch * one.study.gpus <= rollout.problems_per_step * rollout.samples


def test_the_authors_reading_of_answers_is_a_row_of_its_own():
    released = plan("released")
    rows = {row["row"]: row for row in table_spec(released, 3)["rows"]}
    again = rows["Gemma-2-It-2B-released"]
    assert again["paper"] == "Gemma-2-It-2B"
    assert again["score"] == "results/released/scores/reread-served-Gemma-2-It-2B.json"
    assert rows["Gemma-2-It-2B"]["score"] == "results/released/scores/served-Gemma-2-It-2B.json"
    assert released.reread_spec("reread-served-Gemma-2-It-2B", 0) == {
        "generations": released.generations("served-Gemma-2-It-2B", 0),
        "out": released.generations("reread-served-Gemma-2-It-2B", 0),
        "prompts": released.messages,
    }
    assert "prompts" not in released.reread_spec("reread-hub-Seed-Coder-Reasoning-8B", 0)
    assert again["score"] in table_inputs(released, 3)
    assert set(released.rereads) == {
        *("reread-hub-Seed-Coder-Reasoning-8B", "reread-served-Phi-4-Mini-Reasoning-4B", "reread-served-Gemma-2-It-2B"),
    }
    assert plan("tiny").rereads == {}
    assert "Gemma-2-It-2B-released" not in {row["row"] for row in table_spec(plan("tiny"), 3)["rows"]}
