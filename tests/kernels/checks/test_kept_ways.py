"""Ways to work that are kept between calls, of which another one is taken later."""

from __future__ import annotations

import pytest
from lasting_model import TEXT

from dice.kernels.checks.kept_ways import kept_ways
from dice.kernels.checks.python_source import PythonSource


def found(body: str, more: str = "pass") -> bool:
    indent = "\n        "
    source = PythonSource(TEXT.format(body.replace("\n", indent), more.replace("\n", indent)))
    return next(kept_ways(source), None) is not None


@pytest.mark.parametrize(
    "body",
    [
        "return next(self.turns)(x)",
        "return next(TURNS)(x)",
        "for run in self.turns:\n    return run(x)",
        "run, _ = itertools.islice(self.turns, 2)\nreturn run(x)",
        "return next(self.steps)(x)",
        "return self.steps.send(None)(x)",
        "self.queue.rotate()\nreturn self.queue[0](x)",
        "run = self.queue.popleft()\nself.queue.append(run)\nreturn run(x)",
        "WAYS.reverse()\nreturn WAYS[0](x)",
        "WAYS[0], WAYS[1] = WAYS[1], WAYS[0]\nreturn WAYS[0](x)",
        "y = self.run(x)\nself.run = torch.relu\nreturn y",
        "if self.first:\n    self.first = False\n    return ext.f(x)\nreturn torch.relu(x)",
        "first, self.first = self.first, False\nreturn ext.f(x) if first else torch.relu(x)",
        "if self.last is None:\n    self.last = x\n    return ext.f(x)\nreturn torch.relu(x)",
    ],
)
def test_another_way_in_a_later_call(body: str) -> None:
    assert found(body)


def test_an_iterator_in_a_default_argument() -> None:
    assert found("return self.more(x)", "return next(turns)(x)")


@pytest.mark.parametrize(
    "body",
    [
        "room = next(self.rooms)\nreturn ext.f(x)",
        "self.run = torch.relu if x.is_cuda else ext.f\nreturn self.run(x)",
        "if x.shape not in self.table:\n    self.table[x.shape] = ext.f if x.is_cuda else torch.relu\n"
        "return self.table[x.shape](x)",
        "if self.first:\n    self.last = torch.matmul(x, x)\n    self.first = False\nreturn ext.f(x, self.last)",
        "if self.last is None:\n    self.last = torch.matmul(x, x)\nreturn ext.f(x, self.last)",
        "if self.training:\n    return torch.relu(x)\nreturn ext.f(x)",
        "ways = iter([ext.f, torch.relu])\nx = next(ways)(x)\nreturn next(ways)(x)",
        "return WAYS[0](WAYS[1](x))",
        "if x.is_cuda:\n    self.first = False\nreturn ext.f(x) if self.first else torch.relu(x)",
    ],
)
def test_the_same_way_for_the_same_input(body: str) -> None:
    assert not found(body)
