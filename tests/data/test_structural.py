import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F

from dice.cli import main
from dice.data.language_models import LANGUAGE_MODELS, LanguageModel
from dice.data.operators import operators_of_source
from dice.data.structural import KINDS, PAPER_COUNT, SHAPES, problems, scaled, source
from dice.errors import DiceError
from dice.jsonl import read_jsonl
from dice.kernels.problems.problem import Problem

TINY = 0.03
BY_NAME = {model.name: model for model in LANGUAGE_MODELS}


def built(code):
    """The module and its inputs; our own code, so it may run here."""
    names = {}
    exec(compile(code, "problem.py", "exec"), names)
    torch.manual_seed(0)
    return names["Model"](*names["get_init_inputs"]()), names["get_inputs"]()


def test_the_paper_has_291_and_they_are_always_the_same():
    found = problems()
    assert len(found) == PAPER_COUNT == 291
    assert len({problem.code for problem in found}) == len({problem.id for problem in found}) == 291
    assert [problem.number for problem in found] == list(range(1, 292))
    assert found == problems()
    assert found[:40] == problems(40)


def test_blocks_families_and_shapes_vary():
    found = problems()
    for kind in KINDS:
        assert sum(f"_{kind}_b" in problem.name for problem in found) >= 40
    assert {model.name for model in LANGUAGE_MODELS} <= {
        p.name.rsplit("_", 3)[0].removesuffix("_attention").removesuffix("_normed") for p in found
    }
    assert {tuple(map(int, p.name.replace("_b", " ").replace("_n", " ").split()[-2:])) for p in found} == set(SHAPES)
    words = " ".join(problem.code for problem in found)
    for word in (
        "silu",
        'approximate="tanh"',
        "square()",
        "LayerNorm",
        "RMSNorm",
        "repeat_interleave",
        "rotate",
        "slopes",
    ):
        assert word in words


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", [*[model.name for model in LANGUAGE_MODELS][::5], "Gemma2_9B", "Falcon_7B", "BLOOM_560M"]
)
def test_a_block_runs_and_depends_on_its_input(name, kind):
    code = source(scaled(BY_NAME[name], TINY), kind, 2, 16)
    model, inputs = built(code)
    out = model(*inputs)
    assert torch.isfinite(out).all()
    assert out.shape[0] == 2
    assert out.std() > 1e-3
    assert out.flatten().unique().numel() > out.numel() // 4
    other = model(*(value + torch.randn_like(value) for value in inputs))
    assert not torch.allclose(out, other, atol=1e-3)


def test_attention_without_positions_is_scaled_dot_product_attention():
    model, (q, k, v) = built(source(scaled(BY_NAME["StarCoder_15B"], 0.1), "attention_core", 2, 24))
    expected = F.scaled_dot_product_attention(q, k.expand_as(q), v.expand_as(q), is_causal=True)
    torch.testing.assert_close(model(q, k, v), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("positions", ["rope", "rope_interleaved"])
def test_rotary_positions_are_a_rotation_by_the_position(positions):
    head_dim, length, theta = 16, 9, 10_000.0
    model = LanguageModel(
        name="One", hidden=32, heads=2, kv_heads=2, head_dim=head_dim, intermediate=8, mlp="relu", positions=positions
    )
    block, (q, k, v) = built(source(model, "attention_core", 1, length))

    def turned(x):
        pairs = (
            (x[..., : head_dim // 2], x[..., head_dim // 2 :]) if positions == "rope" else (x[..., 0::2], x[..., 1::2])
        )
        angle = torch.arange(length).view(-1, 1) * theta ** (-torch.arange(0, head_dim, 2) / head_dim)
        z = torch.complex(*pairs) * torch.polar(torch.ones_like(angle), angle)
        return torch.cat((z.real, z.imag), dim=-1)  # a permutation of the dimensions changes no score

    expected = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
    torch.testing.assert_close(block(q, k, v), expected, atol=1e-5, rtol=1e-4)


def test_a_window_and_a_cap_change_the_scores():
    base = LanguageModel(name="One", hidden=32, heads=2, kv_heads=1, head_dim=16, intermediate=8, mlp="relu")
    plain, inputs = built(source(base, "attention_core", 1, 12))
    for change in ({"window": 3}, {"score_cap": 0.5}, {"positions": "alibi"}, {"causal": False}):
        changed, _ = built(source(dataclasses.replace(base, **change), "attention_core", 1, 12))
        difference = (changed(*inputs) - plain(*inputs)).abs().amax(dim=(0, 1, 3))
        assert difference.max() > 1e-3
        if "window" in change:
            assert difference[:3].max() == 0  # nothing is out of the window yet


@pytest.mark.parametrize("model", LANGUAGE_MODELS, ids=lambda model: model.name)
def test_geometry(model):
    assert model.heads % model.kv_heads == 0
    small = scaled(model, TINY)
    assert small.heads % small.kv_heads == 0
    assert small.head_dim % 2 == 0
    assert math.prod((small.hidden, small.intermediate)) < math.prod((model.hidden, model.intermediate)) / 100


def test_attention_has_four_projections_and_a_gated_mlp_three():
    llama = BY_NAME["Llama3_8B"]
    assert (operators_of_source(source(llama, "attention", 1, 8)) or []).count("Linear") == 4
    assert (operators_of_source(source(llama, "mlp", 1, 8)) or []).count("Linear") == 3
    assert operators_of_source(source(BY_NAME["GPT2_XL"], "mlp", 1, 8)) == ["Linear", "gelu", "Linear"]


def test_more_than_there_are_is_refused():
    with pytest.raises(DiceError, match="100000 problems were requested"):
        problems(100_000)


def test_the_stage_writes_rows_files_and_a_manifest(tmp_path):
    out = tmp_path / "structural.jsonl"
    arguments = ["structural", "--n", "5", "--scale", "0.05", "--out", str(out), "--folder", str(tmp_path / "files")]
    assert main(arguments) == 0
    rows = list(read_jsonl(out, Problem))
    assert len(rows) == len(list((tmp_path / "files").iterdir())) == 5
    assert (tmp_path / "structural.jsonl.manifest.json").is_file()
    first = out.read_bytes()
    assert main(arguments) == 0
    assert out.read_bytes() == first
