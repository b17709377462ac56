import pytest

from dice.data.leakage.texts import MIN_DISTINCTIVE, Leak, text_index
from dice.data.normal_form import normal_forms
from dice.kernels.problems.problem import Problem

SOFTPLUS = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x):
        return torch.nn.functional.softplus(x)

def get_inputs():
    return [torch.randn(16, 1024)]

def get_init_inputs():
    return []
"""

BLOCK = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        q = q.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        k = k.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        v = v.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        score = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        mixed = torch.softmax(score, dim=-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(x)))

def get_inputs():
    return [torch.randn(2, 16, 64)]

def get_init_inputs():
    return [64, 4]
"""


def problem(name, code):
    return Problem(id=f"level1/{name}", level=1, number=1, name=name, code=code, version="test")


@pytest.fixture(scope="module")
def index():
    return text_index([problem("1_Softplus", SOFTPLUS), problem("2_Block", BLOCK)])


def test_a_copy_with_comments_is_a_text_leak(index):
    copy = "# mine\n" + SOFTPLUS.replace("        return torch", "        # the point of it\n        return torch")
    assert index.check(copy) == Leak("text", "level1/1_Softplus", "same program but for comments and layout")


def test_a_renamed_copy_on_other_shapes_is_a_structure_leak(index):
    renamed = SOFTPLUS.replace("forward(self, x)", "forward(this, data: torch.Tensor)").replace(
        "softplus(x)", "softplus(data)"
    )
    leak = index.check(renamed.replace("16, 1024", "3, 5, 7"))
    assert (leak.kind, leak.problem_id) == ("structure", "level1/1_Softplus")


def test_a_problem_inside_a_larger_program_is_an_ngram_leak(index):
    larger = (
        BLOCK.replace("width", "d")
        .replace("self.norm", "self.ln")
        .replace(
            "return x + self.down(F.gelu(self.up(x)))",
            "x = x + self.down(F.gelu(self.up(x)))\n        return torch.tanh(x).cumsum(1)",
        )
    )
    leak = index.check(larger)
    assert (leak.kind, leak.problem_id) == ("ngram", "level1/2_Block")
    found, total = (int(word) for word in leak.evidence.split()[:3:2])
    assert MIN_DISTINCTIVE <= found <= total


@pytest.mark.parametrize(
    "code",
    [
        SOFTPLUS.replace("softplus", "softsign"),
        SOFTPLUS.replace("softplus(x)", "softplus(x) * 2"),
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x @ x.T\n",
        "not python (",
        "",
    ],
)
def test_other_programs_are_no_leak(index, code):
    assert index.check(code) is None


def variants(count):
    """An index of problems that differ in one number."""
    scaled = (BLOCK.replace("F.gelu(self.up(x))", f"F.gelu(self.up(x)) * {n}.5") for n in range(count))
    return text_index([problem(f"{n}_Op", code) for n, code in enumerate(scaled)])


def test_boilerplate_that_all_problems_share_is_no_evidence():
    other = BLOCK.replace("torch.softmax(score, dim=-1) @ v", "score.sigmoid() @ v")
    assert variants(6).check(other) is None


def windows(code):
    """All stretches of ten tokens, counted here and not by the index."""
    tokens = list(normal_forms(code).tokens)
    return {tuple(tokens[first : first + 10]) for first in range(len(tokens) - 9)}


CHANGED = BLOCK.replace(
    "score = q @ k.transpose(-2, -1)", "score = (q - v).cumsum(-1) @ k.roll(1, 0).transpose(-2, -1)"
)


def of(leak):
    return None if leak is None else leak.evidence


def test_six_tenths_of_the_distinctive_ngrams_are_a_leak_and_one_less_is_none():
    index, common = text_index([problem("2_Block", BLOCK)]), len(windows(BLOCK) & windows(CHANGED))
    assert index.distinctive == [len(windows(BLOCK))]
    assert of(index.check(CHANGED)) == f"{common} of {len(windows(BLOCK))} distinctive 10-grams"
    fewer = CHANGED.replace("x = x + self.out", "x = x * 2 + self.out").replace("x.shape", "x.size()")
    common = len(windows(BLOCK) & windows(fewer))
    assert common % 3 == 0, "so that exactly three in five can be asked for"
    index.distinctive = [common // 3 * 5]
    assert of(index.check(fewer)) == f"{common} of {common // 3 * 5} distinctive 10-grams"
    index.distinctive = [common // 3 * 5 + 1]
    assert index.check(fewer) is None


@pytest.mark.parametrize(("distinctive", "leaks"), [(40, True), (39, False)])
def test_a_problem_with_fewer_than_forty_ngrams_is_not_compared_by_them(distinctive, leaks):
    index = text_index([problem("2_Block", BLOCK)])
    index.distinctive = [distinctive]
    assert (index.check(CHANGED) is not None) == leaks


@pytest.mark.parametrize(("problems", "leaks"), [(3, True), (4, False)])
def test_what_more_than_three_problems_share_is_not_distinctive(problems, leaks):
    assert (variants(problems).check(CHANGED) is not None) == leaks


def test_an_empty_index_finds_nothing():
    assert text_index([]).check(SOFTPLUS) is None
