import textwrap

import pytest

from dice.data.operators import operators_of_source
from dice.data.operators.values import MAX_OPERATORS

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def module(forward, init="", tail="", arguments="self, x"):
    body = textwrap.indent(textwrap.dedent(forward), " " * 8)
    made = textwrap.indent(textwrap.dedent(init), " " * 8)
    return (
        f"{HEAD}\nclass Model(nn.Module):\n    def __init__(self, *args):\n        super().__init__()\n{made}\n"
        f"    def forward({arguments}):\n{body}\n{textwrap.dedent(tail)}"
    )


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (module("return torch.relu(x)"), ["relu"]),
        (module("return F.relu(x, inplace=True)"), ["relu"]),
        (module("return x.relu_().sum(dim=1)"), ["relu", "sum"]),
        (module("return self.fc(x)", "self.fc = nn.Linear(4, 4)"), ["Linear"]),
        (module("return self.net(x)", "self.net = nn.Sequential(nn.Linear(4, 4), nn.GELU())"), ["Linear", "GELU"]),
        (module("return self.w * x + 1", "self.w = nn.Parameter(torch.ones(4))"), ["mul", "add"]),
        (module("return x / x.size(0) ** 0.5"), ["div"]),
        (module("b, n = x.shape\nreturn x.view(b * 2, n // 2)"), ["view"]),
        (module("return -x @ x.T"), ["neg", "t", "matmul"]),
        (module("y = x\ny += 1\nreturn y > 0"), ["add", "gt"]),
        (module("for _ in range(3):\n    x = torch.tanh(x)\nreturn x"), ["tanh"] * 3),
        (module("return F.softmax(x[:, 0], dim=-1)"), ["getitem", "softmax"]),
        (module("return nn.MSELoss()(x, x)"), ["MSELoss"]),
        (module("return self.act(x)", "self.act = F.gelu"), ["gelu"]),
        ("import torch\nx = 1\n", None),
        ("class Model(:\n", None),
    ],
)
def test_operators(code, expected):
    assert operators_of_source(code) == expected


def test_methods_and_functions_are_entered():
    code = HEAD + textwrap.dedent("""
        def scaled(value, factor):
            return value * factor

        class Block(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.norm = nn.LayerNorm(width)

            def forward(self, x):
                return x + self.norm(x)

        class Model(nn.Module):
            def __init__(self, width, depth):
                super().__init__()
                self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])

            def _last(self, x):
                return scaled(x, 2.0).exp()

            def forward(self, x):
                for index, block in enumerate(self.blocks):
                    x = block(x)
                return self._last(x)

        depth = 2

        def get_init_inputs():
            return [8, depth]
    """)
    assert operators_of_source(code) == ["LayerNorm", "add", "LayerNorm", "add", "mul", "exp"]


def test_layers_that_a_loop_or_a_helper_builds():
    code = HEAD + textwrap.dedent("""
        class Model(nn.Module):
            def __init__(self, widths):
                super().__init__()
                def step(a, b):
                    return nn.Sequential(nn.Conv2d(a, b, 3), nn.ReLU())
                layers = []
                for width in widths:
                    layers.append(step(width, width))
                self.features = nn.Sequential(*layers)

            def forward(self, x):
                return self.features(x)

        def get_init_inputs():
            return [[3, 3]]
    """)
    assert operators_of_source(code) == ["Conv2d", "ReLU"] * 2


def test_the_longer_branch_counts_and_an_early_return_does_not():
    longer = "if x.dim() == 2:\n    x = x.exp().log()\nelse:\n    x = x.abs()\nreturn x"
    assert operators_of_source(module(longer)) == ["exp", "log"]
    assert operators_of_source(module("if x is None:\n    return torch.zeros(1)\nreturn x.sin()")) == ["sin"]


def test_numbers_are_no_tensors():
    code = module("return x * (scale + 1)", arguments="self, x, scale: float")
    assert operators_of_source(code) == ["mul"]


@pytest.mark.parametrize(
    "forward",
    [
        "for a in range(60):\n  for b in range(60):\n    for c in range(60):\n      y = a + b\nreturn x.sin()",
        "for a in range(64):\n    for b in range(64):\n        x = x + 1\nreturn x",
        "def f(v):\n    return f(v) + 1\nreturn f(x)",
        "for _ in range(100000000000000000000):\n    x = x + 1\nreturn x",
        "l = [x]\n" + "l = l + l\n" * 40 + "return torch.stack(l)",
    ],
)
def test_hostile_programs_end(forward):
    found = operators_of_source(module(forward))
    assert found is not None
    assert len(found) <= MAX_OPERATORS


def test_a_constructor_that_never_ends_adds_no_operators_to_forward():
    mask = "for a in range(64):\n    for b in range(64):\n        w = torch.sin(torch.zeros(1))"
    numbers = "for a in range(60):\n    for b in range(60):\n        for c in range(60):\n            w = a"
    assert operators_of_source(module("return x.exp().sum()", mask)) == ["exp", "sum"]
    assert operators_of_source(module("return x.exp().sum()", numbers)) == ["exp", "sum"]
