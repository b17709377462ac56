"""The stand-ins are read by what reads the published files, and a model of random weights answers with kernels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import yaml

from dice.data.chat_template import checkpoint_chat
from dice.data.infilling import split_candidate
from dice.data.kernelbench import load_kernelbench
from dice.data.sources import read_source
from dice.data.tokenizer import load_tokenizer
from dice.decoding.block_diffusion import BlockDiffusionConfig
from dice.decoding.decoder import Decoder, Request
from dice.decoding.sampling import SamplingConfig
from dice.errors import DiceError
from dice.evaluation.prompts import prompt_sha256
from dice.evaluation.prompts.kernelbench import kernelbench_prompts
from dice.hub import FetchConfig, fetch
from dice.kernels.api import extract_code
from dice.model.checkpoint import load_model, read_config, stored_dtype
from dice.model.families import FAMILIES
from dice.servers.answers import read_answers
from dice.standins.checkpoints import PUBLISHED
from dice.standins.stage import StandInsConfig, write_stand_ins

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
FILES = {
    "cudallm": "data/a.parquet",
    "concur": "data/a.arrow",
    "structural": "data/a.jsonl",
    "infilling": "data/a.json",
    "end_to_end": "data/b.jsonl",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("standins")
    write_stand_ins(
        StandInsConfig(
            benchmark=str(folder / "KernelBench"),
            checkpoints={str(folder / "hub" / "a" / family): family for family in PUBLISHED},
            data={str(folder / path): name for name, path in FILES.items()},
            answers={str(folder / "solutions.jsonl"): "", str(folder / "record.jsonl"): "model-1"},
            pairs=3,
        )
    )
    return folder


@pytest.mark.parametrize("name", FILES)
def test_the_readers_of_published_files_read_them(place, name):
    pairs, bad = read_source(name, place / FILES[name])
    assert len(pairs) == 3
    assert bad == []
    if name == "infilling":
        assert all(split_candidate(pair.cuda_code).middle == pair.middle for pair in pairs)
    if name == "end_to_end":
        assert [pair.origin["label"] for pair in pairs][1] == 0, "a level that KernelBench has not"
    if name == "structural":
        assert all(len(pair.origin["answers"]) == 2 for pair in pairs)


def test_answers_are_read_as_solutions_and_as_a_record(place):
    problems = {problem.id: problem.number for problem in load_kernelbench(place / "KernelBench")}
    record = read_answers(place / "record.jsonl")
    assert [answer.problem_id for answer in record] == list(problems)
    assert {answer.model for answer in record} == {"model-1"}
    solutions = [json.loads(line) for line in (place / "solutions.jsonl").read_text().splitlines()]
    for answer, solution in zip(record, solutions, strict=True):
        assert extract_code(answer.text).code == solution["custom_code"].strip() + "\n"
        assert answer.problem_id.startswith(f"level{solution['level_id']}/{solution['task_id']}_")


def test_the_benchmark_has_kernelbenchs_layout_and_a_pinned_prompt(place):
    problems = load_kernelbench(place / "KernelBench")
    assert [(problem.level, problem.number) for problem in problems] == [
        (1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)
    ]  # fmt: skip
    empty, prompt = kernelbench_prompts(place / "KernelBench", ["", problems[0].code])
    scale = yaml.safe_load((EXPERIMENTS / "config" / "rehearsal.yaml").read_text())
    assert prompt_sha256(empty) == scale["prompt"]["kernelbench_sha256"]
    assert problems[0].code in prompt


@pytest.mark.parametrize("family", PUBLISHED)
def test_every_family_is_read_by_its_own_entry(place, family):
    """Names of fields and tensors, control tokens and chat template are the vendor's, or these would be refused."""
    folder = place / "hub" / "a" / family
    assert load_model(folder).config.model_type == family
    tokenizer = load_tokenizer(folder, family=family)
    kind = FAMILIES[family]
    assert tokenizer.ids.mask == kind.mask
    assert PUBLISHED[family].end in tokenizer.ids.ends
    prompt = checkpoint_chat(folder, tokenizer)("Write a kernel.")
    assert "Write a kernel." in prompt
    assert tokenizer.decode(tokenizer.encode(prompt)) == prompt


@pytest.mark.parametrize("family", ["sdar", "qwen3"])
def test_checkpoints_are_of_the_vendors_format(place, tmp_path, family):
    """Against transformers' own reading of config.json and generation_config.json, and the published ids."""
    transformers = pytest.importorskip("transformers")
    fetch(FetchConfig(hub=f"a/{family}", mirror=str(place / "hub"), out=str(tmp_path)))
    assert "commit" in json.loads((tmp_path / "model.manifest.json").read_text())["extra"]
    geometry = read_config(tmp_path)
    assert geometry.vocab_size == 151936
    assert stored_dtype(tmp_path) == torch.bfloat16
    assert len(list(tmp_path.glob("model-*.safetensors"))) == 2
    tokenizer = load_tokenizer(tmp_path, family=family)
    assert (tokenizer.ids.mask, *tokenizer.ids.ends) == ({"sdar": 151669}.get(family), 151645, 151643)
    text = "<|im_start|>user\n__global__ void f() {}<|im_end|>\n"
    ids = tokenizer.encode(text)
    assert (ids[0], ids[-2]) == (151644, 151645)
    assert tokenizer.decode(ids) == text
    if family == "qwen3":
        config = transformers.AutoConfig.from_pretrained(tmp_path)
        assert (config.vocab_size, config.num_hidden_layers) == (151936, geometry.num_hidden_layers)
        said = transformers.GenerationConfig.from_pretrained(tmp_path)
        assert (said.do_sample, said.temperature, said.top_k, said.top_p) == (True, 0.6, 20, 0.95)


def test_answers_are_programs_and_differ(place):
    model = load_model(place / "hub" / "a" / "sdar", dtype=torch.float32).eval()
    tokenizer = load_tokenizer(place / "hub" / "a" / "sdar", family="sdar")
    decoding = BlockDiffusionConfig(sampling=SamplingConfig(temperature=1.0))
    decoder = Decoder(
        model, decoding, mask_id=tokenizer.ids.mask, stop_ids=tokenizer.ids.ends, max_batch=8, max_length=64
    )
    prompt = tuple(tokenizer.encode("<|im_start|>user\nimport torch<|im_end|>\n"))
    texts = [tokenizer.decode(found.ids) for found in decoder.run([Request(prompt, 8, seed) for seed in range(8)])]
    programs = {code for text in texts if (code := extract_code(text).code) is not None}
    assert len(programs) > 2
    assert all("class ModelNew" in program for program in programs)


def test_a_repository_that_the_mirror_lacks_is_one_sentence(place, tmp_path):
    with pytest.raises(DiceError, match=r"hub/a/none: the mirror has no such repository\.$"):
        fetch(FetchConfig(hub="a/none", mirror=str(place / "hub"), out=str(tmp_path)))


@pytest.mark.parametrize(("field", "value"), [("data", {"x": "concurr"}), ("checkpoints", {"x": "gpt"})])
def test_what_has_no_stand_in_is_refused(tmp_path, field, value):
    with pytest.raises(DiceError, match=f"no (format|family) '{next(iter(value.values()))}'"):
        write_stand_ins(StandInsConfig(benchmark=str(tmp_path / "KernelBench"), **{field: value}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("family", PUBLISHED)
def test_a_gpu_can_run_them(place, family):
    """FlexAttention and the fast engine want heads of at least 16 numbers, in a power of 2."""
    heads = read_config(place / "hub" / "a" / family).head_dim
    assert heads >= 16
    assert heads & (heads - 1) == 0
