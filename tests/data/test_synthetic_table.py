"""The table of PyTorch's operators: each entry's program runs, its kernel is right, and the tiny scale stays the same."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from synthetic_batch import batched
from test_synthetic import degenerate, run_model

from dice.data.leakage.heldout import applied
from dice.data.leakage.trace import trace
from dice.data.pair import Pair
from dice.data.synthetic import TINY, SyntheticConfig, generate, pairs, sketch, with_changes
from dice.data.synthetic.table import HELD_OUT, functions, known
from dice.data.synthetic.table.entry import named
from dice.errors import DiceError
from dice.kernels.builder.builder import Builder
from dice.kernels.fast_builds import fast_builds
from dice.kernels.pool.workers import Machine, cache_folder

TABLE = SyntheticConfig(shapes="small")
ENTRIES = [name for name, entry in known().items() if entry.group != "architecture"]
AT_ONCE = 60
"""Operators of one extension."""

# what the embedded checkpoints have read was drawn by such settings: digests of 200 pairs of seed 2001
DRAWN = {
    "tiny": (TINY, "3b00160501d0fe77"),
    "tiny corpus": (SyntheticConfig(scale="tiny", varied_programs=True), "8d6b2ae28587dd7f"),
    "tiny flawed": (SyntheticConfig(scale="tiny", flawed_share=1.0), "feb14cb9a086159e"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_tiny_scale_draws_the_same_pairs_as_ever(name: str) -> None:
    config, digest = DRAWN[name]
    found = hashlib.sha256()
    for pair in pairs(config, 2001, 200):
        found.update(f"{pair.pytorch_code}\0{pair.cuda_code}\0".encode())
    assert found.hexdigest()[:16] == digest


def drawn(name: str, index: int = 0, **changes: object) -> Pair:
    """A program around one entry, alone unless the levels say otherwise."""
    changes = {"level_weights": (1, 0, 0), **changes}
    config = with_changes(TABLE, families=(name,), **changes)
    return generate(config, 77, index)


def wrong(made: list[Pair]) -> dict[str, str]:
    """Which of the pairs' answers give other results than PyTorch, executed by the CPU back end; one build for all."""
    whole = batched(made, "batch")
    problem: dict = {}
    answer: dict = {}
    exec(compile(whole.pytorch_code, "problem", "exec"), problem)
    with fast_builds(lambda: Builder(cache_folder(Machine()), "cpu", stock_fallback=False)):
        exec(compile(whole.cuda_code, "answer", "exec"), answer)
    torch.manual_seed(0)
    reference = problem["Model"]()
    torch.manual_seed(0)
    candidate = answer["ModelNew"]()
    found: dict[str, str] = {}
    for number, pair in enumerate(made):
        for seed in (1, 2):
            torch.manual_seed(seed)
            inputs = problem[f"get_inputs_{number}"]()
            with torch.no_grad():
                expected = reference.parts[number](*inputs)
                try:
                    actual = candidate.parts[number](*inputs)
                    torch.testing.assert_close(actual, expected, atol=2e-3, rtol=2e-3, equal_nan=True)
                except (AssertionError, RuntimeError, TypeError) as error:
                    found[pair.origin["anchor"]] = str(error)
    return found


def test_every_entry_is_drawn_and_its_program_runs() -> None:
    assert len(ENTRIES) > 150
    for name in ENTRIES:
        pair = drawn(name)
        assert pair.origin["families"] == [name]
        assert isinstance(run_model(pair, 1), torch.Tensor), name


def assert_right(made: list[Pair]) -> None:
    for start in range(0, len(made), AT_ONCE):
        assert not wrong(made[start : start + AT_ONCE])


def test_every_entry_is_right() -> None:
    assert_right([drawn(name) for name in ENTRIES])


def test_a_wrong_entry_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    mistaken = dataclasses.replace(functions.FURTHER["log2"], cuda="logf({v})")
    monkeypatch.setitem(known(), "log2", named("log2", mistaken))
    sketch._pools.cache_clear()
    try:
        assert set(wrong([drawn("log10"), drawn("log2"), drawn("argsort")])) == {"log2"}
    finally:
        sketch._pools.cache_clear()  # it holds the mistaken entry


def chains(count: int, seed: int) -> Iterator[Pair]:
    return pairs(with_changes(TABLE, level_weights=(0, 1, 0), varied_programs=True), seed, count)


def test_chains_run_and_notice_what_a_kernel_does() -> None:
    bad = {pair.id: word for pair in chains(120, 17) if (word := degenerate(pair)) is not None}
    assert len(bad) <= 2, bad
    for pair in chains(300, 2):  # truth values and whole numbers among them
        assert isinstance(run_model(pair, 1), torch.Tensor)


def test_chains_are_as_deep_as_asked() -> None:
    for depth in ((2, 2), (3, 4)):
        config = with_changes(TABLE, level_weights=(0, 1, 0), depth=depth)
        found = {len(pair.origin["families"]) for pair in pairs(config, 3, 100)}
        assert found == set(range(depth[0], depth[1] + 1))
    with pytest.raises(DiceError, match="at least 2"):
        with_changes(TABLE, depth=(1, 3))


def test_no_sign_of_a_zero_is_asked_for() -> None:
    """`torch.signbit` is true for -0.0, which rounding makes of -0.3, and the kernel's `v < 0.0f` is not."""
    whole = ("ceil", "round", "trunc", "floor")
    config = with_changes(TABLE, families=(*whole, "abs", "neg", "signbit", "to_float"), level_weights=(0, 1, 0))
    found = [pair.origin["families"] for pair in pairs(config, 4, 300)]
    assert not any("signbit" in names and set(names[: names.index("signbit")]) & {*whole[:3]} for names in found)
    assert any("signbit" in names for names in found)


LAYERS = with_changes(TABLE, plain=True, level_weights=(0, 1, 0), depth=(2, 4), layer_share=1.0, varied_programs=True)
_LAYER = re.compile(r"nn\.(Linear|Conv\w+)\(")


def test_chains_begin_with_a_layer_as_often_as_asked() -> None:
    def layers_first(config: SyntheticConfig) -> int:
        drawn = list(pairs(config, 3, 200))
        return sum(known()[pair.origin["families"][0]].layer for pair in drawn)

    assert layers_first(LAYERS) == 200
    assert 70 < layers_first(with_changes(LAYERS, layer_share=0.4)) < 130
    assert layers_first(with_changes(LAYERS, layer_share=0.0)) < 40
    flaws = {pair.origin["flaw"] for pair in pairs(with_changes(LAYERS, flawed_share=1.0), 3, 100)}
    assert {"missing_eps", "never_launched"} <= flaws  # of one without layers, and of any program
    for name, entry in known().items():
        if name in ENTRIES:
            assert entry.layer == (_LAYER.search(drawn(name).pytorch_code) is not None), name
    with pytest.raises(DiceError, match="none of the chosen operators is a layer"):
        generate(with_changes(LAYERS, families=("relu", "softmax")), 3, 1)


def test_layers_are_drawn_by_the_weights_that_are_given() -> None:
    weights = {entry.name: 0.0 for entry in known().values() if entry.layer and not entry.held_out}
    drawn = pairs(with_changes(LAYERS, layer_weights=weights | {"linear": 3.0, "convolution2d": 1.0}), 3, 200)
    first = Counter(pair.origin["families"][0] for pair in drawn)
    assert set(first) == {"linear", "convolution2d"}
    assert 110 < first["linear"] < 190
    with pytest.raises(DiceError, match="no layer to draw from is called 'relu'"):
        generate(with_changes(LAYERS, layer_weights={"relu": 1.0}), 3, 1)
    with pytest.raises(DiceError, match=r"layer_weights: .* has a negative weight"):
        with_changes(LAYERS, layer_weights={"linear": -1.0})


def test_varied_sizes_are_many_and_leave_small_shapes_alone() -> None:
    def sizes(config: SyntheticConfig) -> set[str]:
        layers = with_changes(config, layer_weights={"linear": 1e6}, depth=(2, 2))
        texts = " ".join(pair.pytorch_code for pair in pairs(layers, 3, 150))
        return {*re.findall(r"nn\.Linear\((\d+), ", texts), *re.findall(r"nn\.Linear\(\d+, (\d+)", texts)}

    large = with_changes(LAYERS, shapes="large")
    usual, varied = sizes(large), sizes(with_changes(large, varied_sizes=True))
    assert len(usual) < 25 < len(varied)
    assert "8192" in varied - usual
    assert generate(LAYERS, 3, 1) == generate(with_changes(LAYERS, varied_sizes=True), 3, 1)


def test_varied_names_are_many_and_the_programs_are_right() -> None:
    def names(config: SyntheticConfig) -> set[str]:
        found = re.finditer(
            r"self\.(\w+) = nn\.(?!Parameter)\w+\(", " ".join(p.pytorch_code for p in pairs(config, 3, 150))
        )
        return {one[1] for one in found}

    varied = with_changes(LAYERS, varied_names=True)
    assert len(names(LAYERS)) < 40 < len(names(varied))
    assert {"gemm", "conv_transpose", "block"} <= names(varied)
    assert_right(list(pairs(varied, 9, 60)))


def test_chains_of_images_and_volumes_behind_layers_are_right() -> None:
    made = list(pairs(LAYERS, 9, 120))
    assert {len(_sizes(pair)) for pair in made} >= {2, 4, 5}
    assert_right(made)


def _sizes(pair: Pair) -> torch.Size:
    return run_model(pair, 1).shape


@pytest.mark.slow
@pytest.mark.parametrize("index", [1, 3])
def test_every_entry_is_right_in_other_styles_and_chains(index: int) -> None:
    assert_right([drawn(name, index) for name in ENTRIES])
    assert_right(list(chains(120, index)))


PLAIN = SyntheticConfig(shapes="small", plain=True, varied_programs=True)


def test_plain_answers_have_one_author_and_every_operator() -> None:
    drawn = list(pairs(with_changes(PLAIN, level_weights=(1, 0, 0)), 5, 600))
    assert {pair.origin["families"][0] for pair in drawn} > {"transposed_convolution3d", "batch_norm_layer", "cumprod"}
    for pair in drawn:
        assert "blockIdx.x * 64" in pair.cuda_code or "blockDim" in pair.cuda_code
        assert "class ModelNew(nn.Module):\n    def __init__(self, *args):" in pair.cuda_code
        assert re.search(r"^    def forward\(self, (x|x, y|x, y, z|x, y, z, w)\):$", pair.cuda_code, re.MULTILINE)


@pytest.mark.slow
def test_plain_answers_are_right() -> None:
    assert_right(list(pairs(with_changes(PLAIN, level_weights=(1, 0, 0)), 78, 400)))
    assert_right(list(pairs(with_changes(PLAIN, level_weights=(0, 1, 0), depth=(2, 4)), 5, 120)))


def test_held_out_entries_apply_a_held_out_operator_and_are_not_trained_on() -> None:
    assert set(known()) >= HELD_OUT
    for name in HELD_OUT:
        assert applied(trace(drawn(name).pytorch_code)), name
    for pair in chains(400, 5):
        assert not HELD_OUT & {pair.origin["anchor"], *pair.origin["families"]}


@pytest.mark.slow
def test_no_other_entry_applies_a_held_out_operator() -> None:
    for name, entry in known().items():
        for index in range(0 if entry.held_out else 3):
            pair = drawn(name, index, level_weights=(1, 0, 0) if name in ENTRIES else (0, 0, 1))
            assert not applied(trace(pair.pytorch_code)), name
