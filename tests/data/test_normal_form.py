import pytest

from dice.data.normal_form import normal_forms

PLAIN = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = torch.relu(x) * self.scale
        return y.sum(dim=1)

width = 8

def get_inputs():
    return [torch.randn(4, width)]

def get_init_inputs():
    return [width]
"""

RENAMED = '''
"""A file docstring."""
from torch import nn, Tensor
import torch, math
from torch.nn import functional as F

class GatedSum(nn.Module):
    """Says nothing."""

    def __init__(me, size: int) -> None:
        super(GatedSum, me).__init__()
        me.w: nn.Parameter = nn.Parameter(torch.ones(size))  # a weight

    def forward(me, inp: Tensor) -> Tensor:
        """Docs."""
        out = F.relu(inp) * me.w
        return out.sum(dim=1)

size = 8

def get_inputs():
    return [torch.randn(4, size)]

def get_init_inputs():
    return [size]

if __name__ == "__main__":
    print("demo")
'''


def test_names_annotations_and_comments_do_not_matter():
    assert normal_forms(PLAIN).model == normal_forms(RENAMED).model
    assert normal_forms(PLAIN).tokens == normal_forms(RENAMED).tokens


def test_layout_and_comments_do_not_change_the_text_form():
    commented = PLAIN.replace("y = torch.relu(x) * self.scale", "y = torch.relu( x )*self.scale  # fused later")
    assert normal_forms(commented).text == normal_forms(PLAIN).text
    assert normal_forms(RENAMED).text != normal_forms(PLAIN).text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.relu", "torch.sigmoid"),
        ("dim=1", "dim=0"),
        ("* self.scale", "* self.scale * self.scale"),
        ("torch.relu(x) * self.scale", "torch.relu(x * self.scale)"),
    ],
)
def test_a_different_computation_has_a_different_model(old, new):
    assert normal_forms(PLAIN.replace(old, new)).model != normal_forms(PLAIN).model


def test_shapes_do_not_belong_to_the_model():
    wider = PLAIN.replace("width = 8", "width = 4096")
    assert normal_forms(wider).model == normal_forms(PLAIN).model
    assert normal_forms(wider).text != normal_forms(PLAIN).text


def test_names_are_numbered_per_scope():
    # the same name in two functions is two variables: an argument of `double` that is called like one of `shift` is another
    helpers = "def shift(a):\n    b = a + 1\n    return b * b\n\ndef double({name}):\n    return {name} * 2\n"
    reused, fresh = (normal_forms(helpers.format(name=name)) for name in ("b", "other"))
    assert reused.model == fresh.model


@pytest.mark.parametrize("code", ["def broken(:", "", "\x00", "class A:\n  '''only a docstring'''"])
def test_anything_has_a_form(code):
    form = normal_forms(code)
    assert isinstance(form.text, str)
    assert isinstance(form.tokens, list)


@pytest.mark.parametrize("number", [150, 390, 1000])
@pytest.mark.parametrize("body", ["return {sum}", "{lines}\n        return x"])
def test_a_long_program_has_a_form_of_its_own(number, body):
    """Both become deep trees: a sum of many terms as it stands, many lines when the temporaries are put into one another."""
    terms, lines = (between.join(["x"] * number) for between in (" + ", " + 1\n        x = "))
    code = PLAIN.replace("y = torch.relu(x) * self.scale", body.format(sum=terms, lines=f"x = {lines}"))
    form = normal_forms(code)
    assert len(form.tokens) > number
    assert len(form.text.split()) > number
    assert form.model != normal_forms(PLAIN).model


@pytest.mark.parametrize(
    ("body", "same"),
    [
        ("y = torch.relu(x)\n        z = y * self.scale\n        return z.sum(dim=1)", True),
        ("out = (torch.relu(x) * self.scale).sum(dim=1)\n        return out", True),
        ("x = torch.relu(x)\n        x = x * self.scale\n        x = x.sum(dim=1)\n        return x", True),
        ("y = torch.relu(x) * self.scale\n        z = y.sum(dim=1)\n        return z + y.sum()", False),
        ("y = torch.relu(x)\n        x = x * self.scale\n        return (y * x).sum(dim=1)", False),
    ],
)
def test_temporaries_do_not_matter_where_they_are_read_once(body, same):
    plain = "y = torch.relu(x) * self.scale\n        return y.sum(dim=1)"
    assert plain in PLAIN
    assert (normal_forms(PLAIN.replace(plain, body)).model == normal_forms(PLAIN).model) is same


def test_a_value_that_is_read_twice_stays():
    twice = "y = torch.relu(x) * self.scale\n        return y.sum(dim=1) + y.mean()"
    once = "return (torch.relu(x) * self.scale).sum(dim=1) + (torch.relu(x) * self.scale).mean()"
    plain = "y = torch.relu(x) * self.scale\n        return y.sum(dim=1)"
    assert normal_forms(PLAIN.replace(plain, twice)).model != normal_forms(PLAIN.replace(plain, once)).model
