"""Flawed pairs: labelled, reproducible, and flawed in the way that the label says."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest
import torch

from dice.data.middle import hole_variable
from dice.data.pair import Pair, parse_pair
from dice.data.synthetic import FLAWS, NANO, TINY, Expected, SyntheticConfig, flawed_pair, generate, pairs, with_changes
from dice.data.synthetic.config import Scale
from dice.errors import DiceError, HarnessError
from dice.kernels.checks.catalogue import CATALOGUE

KINDS = {name: expected.kind for name, (_, expected) in FLAWS.items()}


@pytest.fixture(scope="module", params=["nano", "tiny"])
def config(request: pytest.FixtureRequest) -> SyntheticConfig:
    return with_changes(TINY if request.param == "tiny" else NANO, shapes="small")


def made(config: SyntheticConfig, flaw: str, count: int = 12) -> list[Pair]:
    return [flawed_pair(config, 3, index, flaw) for index in range(count)]


def test_there_are_flaws_of_every_kind() -> None:
    assert set(KINDS.values()) == {"wrong", "slow", "deceptive"}
    assert sum(kind == "wrong" for kind in KINDS.values()) >= 6
    assert sum(kind == "deceptive" for kind in KINDS.values()) >= 5


@pytest.mark.parametrize("flaw", sorted(FLAWS))
def test_flawed_pairs_are_rows_with_their_expectation(config: SyntheticConfig, flaw: str) -> None:
    for pair in made(config, flaw):
        assert parse_pair(pair.model_dump()) == pair
        assert pair.origin["flaw"] == flaw
        expected = Expected(**pair.origin["expected"])
        assert expected.kind == KINDS[flaw]
        assert expected.finding is None or expected.finding in CATALOGUE
        assert (expected.functional_status == "correct") == (expected.kind != "wrong")
        assert "ModelNew" in {node.name for node in ast.parse(pair.cuda_code).body if isinstance(node, ast.ClassDef)}


def test_expected_status_follows_the_rules_of_the_finding() -> None:
    for _, expected in FLAWS.values():
        if expected.finding is not None:
            assert (expected.paper == "deceptive") == CATALOGUE[expected.finding].paper
            assert (expected.strict == "deceptive") == CATALOGUE[expected.finding].strict


def test_the_share_of_flawed_pairs_is_kept(config: SyntheticConfig) -> None:
    mixed = list(pairs(with_changes(config, flawed_share=0.3), 4, 300))
    flawed = [pair for pair in mixed if "flaw" in pair.origin]
    assert 60 <= len(flawed) <= 120
    assert len({pair.origin["flaw"] for pair in flawed}) >= 10
    sound = {pair.id: pair for pair in pairs(config, 4, 300)}
    assert all(pair == sound[pair.id] for pair in mixed if "flaw" not in pair.origin)
    assert not any("flaw" in pair.origin for pair in sound.values())


def test_flaws_are_drawn_by_weight(config: SyntheticConfig) -> None:
    mixed = with_changes(config, flawed_share=1.0, flaw_weights={"no_kernel": 24.0, "slow": 0.0})
    drawn = Counter(pair.origin["flaw"] for pair in pairs(mixed, 4, 200))
    assert 110 <= drawn["no_kernel"] <= 160  # 24 of 35
    assert "slow" not in drawn
    assert len(drawn) >= 8
    with pytest.raises(DiceError, match="no flaw 'no_kernels'"):
        list(pairs(with_changes(mixed, flaw_weights={"no_kernels": 2.0}), 4, 1))
    with pytest.raises(DiceError, match="negative weight"):
        SyntheticConfig(flaw_weights={"slow": -1.0})


@pytest.mark.parametrize("scale", ["tiny", "nano"])
def test_another_flaw_is_drawn_where_no_program_can_carry_the_first(scale: Scale) -> None:
    no_epsilon = SyntheticConfig(scale=scale, families=("relu", "softmax", "cumsum", "matmul"), flawed_share=1.0)
    first = flawed_pair(no_epsilon, 7, 0, "no_kernel")
    drawn = Counter(pair.origin["flaw"] for pair in pairs(no_epsilon, 7, 60))
    assert first.origin["flaw"] == "no_kernel"
    assert len(drawn) >= 8
    only = with_changes(no_epsilon, flaw_weights={name: float(name == "missing_eps") for name in FLAWS})
    if scale == "tiny":  # whose programs have at most one of these operators
        assert "missing_eps" not in drawn
        with pytest.raises(HarnessError, match="could carry any flaw"):
            generate(only, 7, 0)


def test_flawed_pairs_are_reproducible(config: SyntheticConfig) -> None:
    all_flawed = with_changes(config, flawed_share=1.0)
    assert [generate(all_flawed, 9, index) for index in range(20)] == list(pairs(all_flawed, 9, 20))


def test_deceptive_pairs_look_like_their_trick(config: SyntheticConfig) -> None:
    for pair in made(config, "no_kernel"):
        assert "__global__" not in pair.cuda_code
        assert "load_inline" not in pair.cuda_code
    for pair in made(config, "never_built"):
        assert "__global__" in pair.cuda_code
        assert "load_inline" not in pair.cuda_code
    for pair in made(config, "never_launched"):
        model = pair.cuda_code.partition("class ModelNew")[2]
        assert "load_inline(" in pair.cuda_code
        assert not any(f".{name}(" in model for name in pair.origin["functions"])
    for pair in made(config, "torch_does_the_work"):
        assert "return ops.copy_cuda(" in pair.cuda_code
    for pair in made(config, "kernel_output_unused"):
        model = pair.cuda_code.partition("class ModelNew")[2]
        assert re.search(r"^        ops\.copy_cuda\(\w+\)$", model, re.MULTILINE)
        assert "return ops" not in model


@pytest.mark.parametrize("flaw", list(FLAWS))
def test_parts_are_those_that_infilling_accepts(config: SyntheticConfig, flaw: str) -> None:
    for pair in made(config, flaw, 6):
        if flaw in ("no_kernel", "never_built"):
            assert (pair.prefix, pair.middle, pair.suffix) == (None, None, None)
        else:
            assert pair.prefix is not None
            assert pair.suffix is not None
            assert f"{pair.prefix}{pair.middle}{pair.suffix}" == pair.cuda_code
            assert hole_variable(pair.prefix, pair.suffix)


def test_missing_eps_leaves_the_large_epsilon_out(config: SyntheticConfig) -> None:
    for pair in made(config, "missing_eps"):
        assert "0.5" in pair.pytorch_code
        assert not re.search(r"\+ (1e-0[356]|0\.001)f\)", pair.cuda_code)


def test_slow_pairs_use_slow_styles(config: SyntheticConfig) -> None:
    from dice.data.synthetic.cuda import contract, element, rows, total

    slow = {*element.SLOW_STYLES, *contract.SLOW_STYLES, *rows.SLOW_STYLES, *total.SLOW_STYLES, "one_block"}
    for pair in made(config, "slow", 30):
        assert set(pair.origin["styles"]) <= slow
        assert pair.origin["slow"]


@pytest.mark.parametrize("flaw", ["no_kernel", "never_built"])
def test_pairs_without_a_kernel_give_the_right_answer(config: SyntheticConfig, flaw: str) -> None:
    for pair in made(config, flaw, 25):
        reference: dict = {}
        candidate: dict = {}
        exec(compile(pair.pytorch_code, "model", "exec"), reference)
        exec(compile(pair.cuda_code, "answer", "exec"), candidate)
        outputs = []
        for made_class in (reference["Model"], candidate["ModelNew"]):
            torch.manual_seed(3)
            model = made_class(*reference["get_init_inputs"]())
            with torch.no_grad():
                outputs.append(model(*reference["get_inputs"]()))
        assert torch.equal(outputs[0], outputs[1])


def test_a_flaw_that_few_programs_can_carry_is_found_all_the_same() -> None:
    """Pair 26147 of the nano scale's corpus: the first sixty programs have no tail that could be missing."""
    config = SyntheticConfig(scale="nano", level_weights=(5, 5, 0), max_answer_chars=2000)
    assert flawed_pair(config, 2001, 26147, "missing_tail").origin["flaw"] == "missing_tail"
