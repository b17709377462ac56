"""The compact form of a program: what it computes stays, how it was written goes."""

import re

import pytest

from dice.data.synthetic.config import SyntheticConfig
from dice.data.synthetic.generator import pairs
from dice.errors import DiceError
from dice.evaluation.prompts.compact import compact_program
from dice.kernels.problems.mini import load_mini

WORDY = '''"""A file."""
import torch
import torch.nn as nn
import torch.nn.functional as fun
from torch import Tensor


def half(x: Tensor) -> Tensor:
    """Half of it."""
    return x / 2


class Model(nn.Module):
    """Softmax of a product."""

    def __init__(self, features: int, eps: float = 1e-5):
        super(Model, self).__init__()
        self.eps = eps  # small
        self.norm = torch.nn.LayerNorm(features)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        # the product
        product = x @ y
        z = fun.softmax(product, dim=-1)
        out = half(z) + self.eps
        return out


batch = 4
inner: int = 8
features = 2 * inner
eps = 0.5


def get_inputs():
    # scaled
    x = torch.randn(batch, inner)
    scale = 0.5 + torch.rand(inner, features)
    return [x / 3.0, scale * torch.randn(inner, features)]


def get_init_inputs():
    return [features, eps]
'''
COMPACT = """def half(x):
    return x / 2
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
    def forward(self, x, y):
        return half(torch.softmax(torch.matmul(x, y), dim=-1)) + 0.5
# x: 2d 4 x 8
# y: 2d 8 x 16"""


def test_what_computes_stays_and_the_rest_goes():
    assert compact_program(WORDY) == COMPACT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import torch.nn.functional as fun\n", "import torch.nn.functional as F\n"),
        ("        # the product\n", ""),
        ("        z = fun.softmax(product, dim=-1)\n", "        z = torch.nn.functional.softmax(product, dim=-1)\n"),
        ("        out = half(z) + self.eps\n        return out\n", "        return half(z) + self.eps\n"),
        ("super(Model, self).__init__()", "super().__init__()"),
        ("batch = 4\n", "batch = 2 + 2\n"),
        ("batch = 4\n", "batch = 5\n"),
        ("eps: float = 1e-5", "eps"),
        ("self.eps = eps  # small\n", "self.bias = eps\n"),
        ("fun.softmax(product, dim=-1)", "product.softmax(-1)"),
        ("x: torch.Tensor, y: torch.Tensor", "a, b"),
    ],
)
def test_another_writing_is_the_same_program(old, new):
    code = WORDY.replace(old, new)
    assert code != WORDY
    code = code.replace("fun.softmax", "F.softmax") if "as F" in new else code
    code = code.replace("x @ y", "a @ b") if new == "a, b" else code
    code = code.replace("self.eps", "self.bias") if "self.bias" in new else code
    assert compact_program(code) == COMPACT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dim=-1", "dim=0"),
        ("x / 2", "x / 3"),
        ("batch = 4", "batch = 9"),
        ("eps = 0.5\n", "eps = 0.25\n"),
        ("x @ y", "y @ x"),
        ("self.norm", "self.layer"),
    ],
)
def test_another_program_is_another_text(old, new):
    assert compact_program(WORDY.replace(old, new)) != COMPACT


def test_a_constant_does_not_replace_the_parameter_of_its_name():
    code = (
        "import torch.nn as nn\nk = 3\nclass Model(nn.Module):\n    def forward(self, x, k=1):\n        return x * k\n"
    )
    assert "return x * y" in compact_program(code)
    assert "return x * 3" in compact_program(code.replace(", k=1", ""))


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        ("torch.randn(3, 100)", "2d 4 x 128"),
        ("torch.rand([5000])", "1d 4096"),
        ("torch.randint(0, 10, (7,))", "1d 8 int64"),
        ("torch.randint(0, 10, size=(7, 1), dtype=torch.int32)", "2d 8 x 1 int32"),
        ("torch.arange(30)", "1d 32 int64"),
        ("(torch.randn(3, n) > 0) * 2.0", "2d 4 x 64"),
        ("torch.randn(*shape)", "torch.randn(*shape)"),
        ("torch.rand(8, 3, height, width)", "4d 8 x 4 x 256 x 256"),
        ("torch.rand(8, depth, rows)", "3d 8 x 16 x 32"),
        ("torch.rand(8, *frame)", "3d 8 x 16 x 64"),
        ("torch.rand(8, unknown, 32)", "torch.rand(8, unknown, 32)"),
        ("torch.linspace(-1.0, 1.0, 30)", "1d 32"),
        ("2.5", "2.5"),
    ],
)
def test_inputs_are_shown_by_rank_size_and_kind(made, shown):
    sizes = "n = 64\nheight = width = 224\ndepth, rows = 16, 32\nframe = (depth, n)\n"
    code = f"import torch\n{sizes}class Model:\n    def forward(self, t):\n        return t\n\ndef get_inputs():\n"
    assert compact_program(f"{code}    return [{made}]\n").splitlines()[-1] == f"# x: {shown}"


def test_locals_make_room_for_the_arguments_names():
    code = "class Model:\n    def forward(self, a):\n        x = a + 1\n        return x * a * x\n"
    shown = compact_program(code)
    assert "x_ = x + 1" in shown
    assert "return x_ * x * x_" in shown


MODULE = """import torch
import torch.nn as nn
import torch.nn.functional as F
class Model(nn.Module):
    def __init__(self, slope, size=3):
        super().__init__()
        self.slope = slope
        self.layer = LAYER
    def forward(self, x):
        return RESULT
def get_init_inputs():
    return [0.1]
"""


@pytest.mark.parametrize(
    ("layer", "result", "shown"),
    [
        ("slope", "F.leaky_relu(x, self.slope)", "F.leaky_relu(x, 0.1)"),
        ("nn.LeakyReLU(slope)", "self.layer(x)", "F.leaky_relu(x, 0.1)"),
        ("nn.ReLU(inplace=True)", "self.layer(x)", "torch.relu(x)"),
        ("nn.MaxPool2d(size, stride=2 * size)", "self.layer(x)", "F.max_pool2d(x, 3, stride=6)"),
        ("nn.Softmax(1)", "self.layer(x) * x.pow(2).mean(1)", "torch.softmax(x, dim=1) * torch.mean(x ** 2, dim=1)"),
        ("size ** 2", "x * x + self.layer", "x ** 2 + 9"),
    ],
)
def test_settings_and_layers_without_weights_stand_where_they_are_used(layer, result, shown):
    text = compact_program(MODULE.replace("LAYER", layer).replace("RESULT", result))
    assert f"return {shown}\n" in text + "\n"
    assert "__init__" not in text


@pytest.mark.parametrize("layer", ["nn.Linear(size, 4)", "nn.Parameter(torch.ones(size))", "torch.ones(size)"])
def test_layers_with_weights_stay(layer):
    text = compact_program(MODULE.replace("LAYER", layer).replace("RESULT", "self.layer(x)"))
    assert f"self.layer = {layer.replace('size', '3')}" in text
    assert "return self.layer(x)" in text


def test_what_changes_later_stays():
    counting = MODULE.replace("LAYER", "0").replace(
        "        return RESULT", "        self.layer += 1\n        return x"
    )
    assert "self.layer = 0" in compact_program(counting)


@pytest.mark.parametrize("code", ["def f(:", "x = 1", "class Model:\n    pass", ""])
def test_what_is_no_program_is_refused(code):
    with pytest.raises(DiceError, match="compact form"):
        compact_program(code)


def test_every_problem_of_the_mini_benchmark_gets_shorter():
    for problem in load_mini("gpu"):
        text = compact_program(problem.code)
        assert len(text) < len(problem.code)
        assert re.search(r"^# x: \dd \d", text, re.MULTILINE)
        compile(text, problem.id, "exec")


def test_varied_writings_of_synthetic_programs_leave_no_trace():
    config = SyntheticConfig(scale="tiny", varied_programs=True)
    codes = [pair.pytorch_code for pair in pairs(config, seed=3, count=40)]
    assert any('"""' in code for code in codes)
    assert any("nn.functional." in code for code in codes)
    shown = "\n".join(compact_program(code) for code in codes)
    assert not any(trace in shown for trace in ('"""', "nn.functional.", "get_inputs"))
