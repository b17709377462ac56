import pytest

from dice.data.leakage import MIN_DISTINCTIVE, Leak, fingerprints
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
    return fingerprints([problem("1_Softplus", SOFTPLUS), problem("2_Block", BLOCK)])


def test_a_copy_with_comments_is_a_text_leak(index):
    copy = "# mine\n" + SOFTPLUS.replace("        return torch", "        # the point of it\n        return torch")
    assert index.check(copy) == Leak("text", "level1/1_Softplus", "same program but for comments and layout")


def test_a_renamed_copy_on_other_shapes_is_a_structure_leak(index):
    renamed = SOFTPLUS.replace("forward(self, x)", "forward(this, data: torch.Tensor)").replace(
        "softplus(x)", "softplus(data)"
    )
    leak = index.check(renamed.replace("16, 1024", "3, 5, 7"))
    assert leak is not None
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
    assert leak is not None
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


def test_boilerplate_that_all_problems_share_is_no_evidence():
    many = [problem(f"{n}_Op", BLOCK.replace("F.gelu(self.up(x))", f"F.gelu(self.up(x)) * {n}.5")) for n in range(6)]
    other = BLOCK.replace("torch.softmax(score, dim=-1) @ v", "score.sigmoid() @ v")
    assert fingerprints(many).check(other) is None


def test_an_empty_index_finds_nothing():
    assert fingerprints([]).check(SOFTPLUS) is None
