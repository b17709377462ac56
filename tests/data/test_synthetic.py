"""The generator of synthetic pairs: what it promises about texts, operators, levels and repetition."""

from __future__ import annotations

import ast
import functools
import json
import math
import random
import re
from collections import Counter
from itertools import islice

import pytest
import torch

from dice.data.infilling import split_candidate
from dice.data.leakage.texts import text_index
from dice.data.pair import Pair, parse_pair
from dice.data.synthetic import (
    HELD_OUT,
    NANO,
    TINY,
    SyntheticConfig,
    generate,
    known,
    pairs,
    with_changes,
)
from dice.data.synthetic.cuda import contract, element, rows, total
from dice.data.synthetic.stage import exam_index
from dice.errors import DiceError, HarnessError
from dice.kernels.problems.mini import load_mini

SMALL = SyntheticConfig(shapes="small")
HELD = SyntheticConfig(shapes="small", families=tuple(sorted(HELD_OUT)))


@pytest.fixture(scope="module")
def nano() -> list[Pair]:
    return list(pairs(NANO, 5, 6000))


@pytest.fixture(scope="module")
def tiny() -> list[Pair]:
    return list(pairs(TINY, 5, 3000))


def run_model(pair: Pair, seed: int) -> torch.Tensor:
    """The reference program's output; an independent check of the PyTorch text."""
    scope: dict = {}
    exec(compile(pair.pytorch_code, pair.id, "exec"), scope)
    torch.manual_seed(seed)
    model = scope["Model"](*scope["get_init_inputs"]())
    with torch.no_grad():
        return model(*scope["get_inputs"]())


def test_an_expression_in_another_one_keeps_its_brackets() -> None:
    """`~x.bool()`, written into a call of its result, was `~x.bool().float()`: a program that PyTorch refuses."""
    config = SyntheticConfig(
        shapes="small", level_weights=(0, 1, 0), depth=(2, 2), families=("logical_not", "to_float")
    )
    nested = 0
    for pair in pairs(config, 1, 200):
        run_model(pair, 0)
        nodes = ast.walk(ast.parse(pair.pytorch_code))
        nested += any(isinstance(node, ast.Attribute) and isinstance(node.value, ast.UnaryOp) for node in nodes)
    assert nested > 10


def test_a_pair_depends_on_seed_and_index_alone(nano: list[Pair]) -> None:
    shuffled = random.Random(0).sample(range(6000), 40)
    assert [generate(NANO, 5, index) for index in shuffled] == [nano[index] for index in shuffled]
    assert generate(NANO, 6, 0).cuda_code != nano[0].cuda_code
    assert [pair.id for pair in pairs(NANO, 5, 3, start=7)] == [pair.id for pair in nano[7:10]]


def test_pairs_are_distinct(nano: list[Pair], tiny: list[Pair]) -> None:
    assert len({(pair.pytorch_code, pair.cuda_code) for pair in nano}) == len(nano)
    assert len({pair.id for pair in nano}) == len(nano)
    assert len({(pair.pytorch_code, pair.cuda_code) for pair in tiny}) > 0.98 * len(tiny)


def test_rows_are_pairs_that_the_other_stages_take(nano: list[Pair], tiny: list[Pair]) -> None:
    for pair in [*nano[:300], *tiny[:300]]:
        assert parse_pair(json.loads(pair.model_dump_json())) == pair
        split = split_candidate(pair.cuda_code)
        assert (split.prefix, split.middle, split.suffix) == (pair.prefix, pair.middle, pair.suffix)
        assert split.variable == "source"


def top_level(code: str) -> dict[str, ast.AST]:
    return {node.name: node for node in ast.parse(code).body if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def test_texts_have_the_parts_of_the_format(nano: list[Pair], tiny: list[Pair]) -> None:
    for pair in [*nano[:600], *tiny[:300]]:
        assert {"Model", "get_inputs", "get_init_inputs"} <= set(top_level(pair.pytorch_code))
        assert set(top_level(pair.cuda_code)) == {"ModelNew"}
        calls = [
            node
            for node in ast.walk(ast.parse(pair.cuda_code))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "load_inline"
        ]
        assert len(calls) == 1
        assert {"name", "cpp_sources", "cuda_sources", "functions"} <= {word.arg for word in calls[0].keywords}


def test_bound_functions_are_declared_defined_and_called(nano: list[Pair], tiny: list[Pair]) -> None:
    for pair in [*nano[:600], *tiny[:300]]:
        assert pair.middle is not None
        assert pair.suffix is not None
        kernels = re.findall(r"__global__ void (\w+)\(", pair.middle)
        assert kernels
        assert len(set(kernels)) == len(kernels)
        for kernel in kernels:
            assert f"{kernel}<<<" in pair.middle
        for name in pair.origin["functions"]:
            declaration = re.search(rf"torch::Tensor {name}\([^)]*\);", pair.suffix)
            assert declaration is not None
            head = " ".join(re.sub(r"\s+", " ", pair.middle).replace("( ", "(").replace(" )", ")").split())
            assert declaration.group()[:-1] + " {" in head
            assert f".{name}(" in pair.suffix.partition("class ModelNew")[2]
        assert pair.middle.count("{") == pair.middle.count("}")
        assert pair.middle.count("(") == pair.middle.count(")")


def test_every_operator_style_and_level_appears(nano: list[Pair]) -> None:
    seen = Counter(name for pair in nano for name in pair.origin["families"])
    trained = {name for name, entry in known().items() if not entry.held_out and entry.group != "architecture"}
    assert trained <= set(seen)
    assert {name for name, entry in known().items() if not entry.held_out} == {p.origin["anchor"] for p in nano}
    assert len(trained) >= 250
    assert len({entry.group for entry in known().values()}) >= 10
    styles = {style for pair in nano for style in pair.origin["styles"]}
    written = {
        *element.MAP_STYLES, *element.SLOW_STYLES, "tiled", "shared_weights", *rows.ROW_STYLES, *rows.SLOW_STYLES,
        *rows.SCAN_STYLES, *contract.CONTRACT_STYLES, *contract.SLOW_STYLES, *total.TOTAL_STYLES, *total.SLOW_STYLES,
    }  # fmt: skip
    assert written <= styles
    assert {pair.level for pair in nano} == {1, 2, 3}


def test_levels_are_what_was_composed(nano: list[Pair]) -> None:
    for pair in nano:
        count = len(pair.origin["families"])
        assert (pair.level == 1) == (count == 1) or pair.level == 3
        assert pair.level != 2 or 2 <= count <= 5
    architectures = [pair for pair in nano if pair.level == 3]
    assert min(len(pair.origin["families"]) for pair in architectures) >= 2


def test_held_out_operators_never_train(nano: list[Pair]) -> None:
    assert len(HELD_OUT) >= 10
    assert set(known()) >= HELD_OUT
    for pair in nano:
        assert not HELD_OUT & {pair.origin["anchor"], *pair.origin["families"]}
    for phrase in ("F.mish", "F.softplus", "F.huber_loss", "F.group_norm", "torch.tril", "nn.AvgPool1d", "log_softmax"):
        assert not any(phrase in pair.pytorch_code for pair in nano)


def test_held_out_operators_are_drawn_where_they_are_named() -> None:
    made = list(pairs(HELD, 5, 400))
    assert {pair.origin["anchor"] for pair in made} == HELD_OUT
    named, others = exam_index(("mini",), ("mish",)), exam_index(("mini",))
    assert named is not None
    assert others is not None
    mish = next(pair for pair in made if pair.origin["families"] == ["mish"])
    assert others.leaks(mish.pytorch_code)
    assert not named.leaks(mish.pytorch_code)


def test_no_pair_is_a_problem_of_the_mini_benchmark() -> None:
    index = exam_index(("mini",))
    assert index is not None
    texts = text_index([*load_mini("cpu"), *load_mini("gpu")])
    for config in (NANO, TINY):
        for pair in pairs(config, 11, 50, leaks=index.leaks):
            assert texts.check(pair.pytorch_code) is None
    assert index.counts.leaks, "nothing was drawn anew, so the check is not known to work"


def test_a_leaking_program_is_drawn_anew() -> None:
    plain = generate(NANO, 5, 0)
    assert generate(NANO, 5, 0, lambda code: code == plain.pytorch_code).pytorch_code != plain.pytorch_code
    with pytest.raises(HarnessError, match="No program could be drawn"):
        generate(TINY, 5, 0, lambda code: True)


def test_tiny_answers_are_short_and_plain(tiny: list[Pair]) -> None:
    assert max(len(pair.cuda_code) for pair in tiny) <= TINY.longest_answer
    assert {style for pair in tiny for style in pair.origin["styles"]} == {"naive", "thread", "one_thread"}
    assert len({name for pair in tiny for name in pair.origin["families"]}) >= 80
    kernels = {name for pair in tiny for name in re.findall(r"__global__ void (\w+)", pair.cuda_code)}
    assert kernels <= {"kernel", "kernel2", "kernel3"}


def test_tiny_answers_fit_small_models(tiny: list[Pair]) -> None:
    from dice.data.tokenizer import train_tokenizer

    sample = tiny[:1500]
    bpe = train_tokenizer((text for pair in sample for text in (pair.pytorch_code, pair.cuda_code)), 1024)
    lengths = sorted(len(bpe.encode(pair.cuda_code)) for pair in sample)
    assert lengths[len(lengths) // 2] <= 285
    assert lengths[-1] <= 620


def test_varied_programs_differ_in_words_only() -> None:
    """More ways to write the program, the same plain answer; without the switch nothing of it appears."""
    plain, varied = (
        [generate(SyntheticConfig(scale="tiny", varied_programs=switch), 3, k) for k in range(200)]
        for switch in (False, True)
    )
    signs = (
        '    """',
        "nn.functional.",
        "super(Model, self)",
        "class Model(nn.Module):\n    def forward",
        "columns = ",
    )
    for sign in signs:
        assert any(sign in pair.pytorch_code for pair in varied), sign
        assert not any(sign in pair.pytorch_code for pair in plain), sign
    for pair in varied:
        ast.parse(pair.pytorch_code)
        assert "__global__ void kernel" in pair.cuda_code
        assert '"""Mod' not in pair.cuda_code


def test_config_that_makes_nothing_is_refused() -> None:
    with pytest.raises(DiceError, match="no operator is called 'sofmax'"):
        generate(SyntheticConfig(families=("sofmax",)), 1, 0)
    with pytest.raises(DiceError, match="no program of the levels"):
        generate(SyntheticConfig(families=("softmax",), level_weights=(0, 0, 1)), 1, 0)
    with pytest.raises(DiceError, match="not a share"):
        SyntheticConfig(flawed_share=1.5)


def test_chosen_families_and_levels_are_obeyed() -> None:
    config = with_changes(NANO, families=("softmax", "matmul"), level_weights=(1, 1, 0))
    made = list(islice(pairs(config, 2, 60), 60))
    assert all({"softmax", "matmul"} & set(pair.origin["families"]) for pair in made)
    assert {pair.level for pair in made} == {1, 2}


def test_unfused_programs_have_a_kernel_for_each_operator(nano: list[Pair]) -> None:
    chains = [pair.origin for pair in nano if pair.level == 2]
    unfused = [origin for origin in chains if not origin["fused"]]
    assert 0.2 < len(unfused) / len(chains) < 0.3
    assert all(len(origin["styles"]) == len(origin["families"]) for origin in unfused)
    assert any(len(origin["styles"]) == 1 and len(origin["families"]) >= 3 for origin in chains if origin["fused"])


def degenerate(pair: Pair) -> str | None:
    """What is wrong with a reference program as a test of a kernel; None when it is sound."""
    outputs = [run_model(pair, seed) for seed in range(4)]
    first = outputs[0]
    if not first.dtype.is_floating_point:
        return None if any(not torch.equal(first, other) for other in outputs) else "constant"
    if not all(torch.isfinite(output).all() for output in outputs):
        return "not finite"
    close = functools.partial(torch.allclose, atol=1e-2, rtol=1e-2)
    if all(close(output, torch.zeros_like(output)) for output in outputs):
        return "zero"
    if all(close(first, other) for other in outputs[1:]):
        return "input-independent"
    if first.numel() > 1 and close(first, first.mean().expand_as(first)):
        return "constant"
    return None


@pytest.mark.parametrize("config", [SMALL, TINY, with_changes(TINY, varied_programs=True), HELD])
def test_references_run_and_notice_what_a_kernel_does(config: SyntheticConfig) -> None:
    made = list(pairs(config, 17, 150))
    bad = {pair.id: word for pair in made if (word := degenerate(pair)) is not None}
    assert len(bad) <= 3, bad


def test_degenerate_programs_are_noticed() -> None:
    """The check above can fail: a softmax over many elements of small inputs is zero within the tolerance."""
    code = generate(SMALL, 1, 0).model_copy(
        update={
            "pytorch_code": "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n"
            "    def forward(self, x):\n        return torch.softmax(x, dim=1)\n\n\n"
            "def get_inputs():\n    return [torch.rand(4, 4096)]\n\n\ndef get_init_inputs():\n    return []\n"
        }
    )
    assert degenerate(code) == "zero"


def input_elements(pair: Pair) -> int:
    """Elements of the largest input that the text asks for."""
    constants = dict(re.findall(r"^(\w+) = (\d+)$", pair.pytorch_code, re.MULTILINE))
    largest = 0
    for call in re.findall(r"torch\.rand(?:n|int)?\(([^()]*)\)", pair.pytorch_code.partition("def get_inputs")[2]):
        sizes = [int(constants.get(word.strip(), word)) for word in call.split(",") if word.strip()]
        largest = max(largest, math.prod(sizes))
    return largest


def test_small_shapes_are_small_and_large_ones_large() -> None:
    small = sorted(input_elements(pair) for pair in pairs(SMALL, 23, 200))
    large = sorted(input_elements(pair) for pair in pairs(NANO, 23, 200))
    assert small[-1] < 100_000
    assert large[len(large) // 2] > 200_000
    assert large[-1] < 60_000_000
