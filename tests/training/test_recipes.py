"""The recipes of the base models name settings that exist, and are the same for both kinds of model."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from plans import EXPERIMENTS, plan

from dice.config import load_config, parse_config, to_spec
from dice.data.synthetic.generator import pairs
from dice.data.synthetic.stage import SynthConfig
from dice.manifest import read_manifest, sha256_file
from dice.model.transformer import ModelConfig
from dice.study.plan import Plan
from dice.training.sft_config import SftConfig

BASE = EXPERIMENTS / "base"
WITHOUT_KERNELS = ("no_kernel", "never_built", "never_launched", "torch_does_the_work", "kernel_output_unused")


def recipe(one: Plan, unit: str) -> dict:
    """Every setting of a base's training; where its files are, and on what it runs, does not count."""
    config = to_spec(parse_config(SftConfig, one.training_spec(unit) | {"out": "x"}, unit))
    elsewhere = ("pairs", "out", "tokenizer", "device", "memory_gib")
    return {name: value for name, value in config.items() if name not in elsewhere}


def test_the_tiny_scale_trains_from_scratch_what_is_embedded():
    tiny = plan("tiny")
    given = {"pairs": ["p.jsonl"], "out": "x", "tokenizer": "t", "tensorboard": True}
    embedded = to_spec(load_config(SftConfig, BASE / "tiny.yaml", [], given))
    assert recipe(tiny, "8B-base") == {name: embedded[name] for name in recipe(tiny, "8B-base")}
    script = (BASE / "train.sh").read_text()
    default = re.search(r"PAIRS:-(\d+)", script)
    assert default is not None
    corpus = to_spec(load_config(SynthConfig, BASE / "tiny-corpus.yaml", [], {"out": "x", "n": int(default[1])}))
    assert corpus == to_spec(parse_config(SynthConfig, tiny.synth_spec("corpus") | {"out": "x"}, "corpus"))
    tokenizer = tiny.tokenizer_spec("corpus")
    assert f"--rows {tokenizer['rows']} --vocab-size {tokenizer['vocab_size']} " in script


@pytest.mark.parametrize("scale", ["tiny", "smoke", "nano"])
def test_both_kinds_of_base_have_one_recipe(scale):
    """The same pairs, windows, steps and parameters: whatever differs between the rows is the kind of model."""
    one = plan(scale)
    for size in one.study.sizes:
        diffusion, autoregressive = (recipe(one, f"{size}-{name}") for name in ("base", "qwen3"))
        assert (diffusion.pop("objective"), autoregressive.pop("objective")) == ("block_diffusion", "autoregressive")
        assert diffusion == autoregressive
        assert one.training_spec(f"{size}-base")["pairs"] == one.training_spec(f"{size}-qwen3")["pairs"]


def test_the_embedded_bases_were_trained_by_this_recipe_on_the_same_pairs():
    """What their manifests say: the same settings but for the objective, the same files, as many steps and parameters."""
    tiny, manifests = plan("tiny"), []
    for name, unit in (("tiny", "8B-base"), ("tiny-ar", "8B-qwen3")):
        manifest = read_manifest(BASE / name)
        assert manifest is not None
        wanted = recipe(tiny, unit)
        assert {key: manifest.spec[key] for key in wanted if key in manifest.spec} == wanted | {"tensorboard": False}
        manifests.append(manifest)
        assert manifest.extra["steps"] == wanted["max_steps"]
        assert manifest.extra["samples"] == tiny.synth_spec("corpus")["n"]
    diffusion, autoregressive = manifests
    pairs_of = [{path: digest for path, digest in one.inputs.items() if "history" not in path} for one in manifests]
    assert pairs_of[0] == pairs_of[1]
    assert len(pairs_of[0]) == 16
    assert diffusion.extra["parameters"] == autoregressive.extra["parameters"]
    assert sha256_file(BASE / "tiny" / "tokenizer.json") == sha256_file(BASE / "tiny-ar" / "tokenizer.json")


@pytest.mark.parametrize(("scale", "share"), [("tiny", 0.6), ("nano", 0.3)])
def test_no_base_is_taught_to_answer_without_kernels(scale, share):
    """Drawn for real: flaws that stay are equally frequent, and every answer launches a kernel of its own."""
    config = parse_config(SynthConfig, plan(scale).synth_spec("corpus"), "corpus")
    drawn = list(pairs(config.generator, config.seed, 400))
    flaws = Counter(pair.origin.get("flaw") for pair in drawn)
    expected = 400 * share
    assert abs(sum(count for flaw, count in flaws.items() if flaw) - expected) < 40
    assert not flaws.keys() & set(WITHOUT_KERNELS)
    assert len(flaws) == 9, "seven that are wrong, one that is slow, and none"
    assert all(0.4 < count / (expected / 8) < 2 for flaw, count in flaws.items() if flaw)
    assert all("__global__" in pair.cuda_code and "<<<" in pair.cuda_code for pair in drawn)


@pytest.mark.parametrize("scale", ["tiny", "smoke", "nano"])
def test_rows_say_how_large_their_models_are(scale):
    one = plan(scale)
    for size, settings in one.study.sizes.items():
        geometry = settings.sdar.sft["geometry"]
        model = ModelConfig(vocab_size=one.study.tokenizer["vocab_size"], **geometry)
        millions = (model.matmul_parameters + model.head_parameters) / 1e6
        said = settings.parameters or ""
        digits = len(said.removesuffix("M").partition(".")[2])
        assert f"{millions:.{digits}f}M" == said, size
