"""How large a problem's inputs are is known before they are made."""

from __future__ import annotations

import pytest
import torch
from torch.utils._pytree import tree_leaves

from dice.kernels.grader.reference import Reference

MODEL = """
import numpy as np
import torch

class Model(torch.nn.Module):
    def forward(self, *arguments):
        return arguments[0]

def get_init_inputs():
    return []
"""

INPUTS = {
    "plain": "return [torch.rand(64, 33), torch.randn(7)]",
    "dtypes": "return [torch.randint(0, 9, (40,)), torch.ones(5, dtype=torch.float16), torch.zeros(3, dtype=torch.bool)]",
    "nested": "return [{'a': torch.rand(6)}, [torch.rand(2, 2), 3.0, None]]",
    "worked on": "x = torch.rand(12, 12); return [torch.tril(x @ x.T).t().contiguous(), (x > 0.5).float()]",
    "by value": "n = int(torch.randint(5, 6, (1,)).item()); return [torch.rand(n, 4)]",
    "numpy": "return [torch.from_numpy(np.random.rand(6, 7).astype('float32'))]",
    "no tensors": "return [3]",
}


@pytest.mark.parametrize("body", INPUTS.values(), ids=INPUTS)
def test_the_size_is_that_of_the_inputs(body: str) -> None:
    reference = Reference("p", f"{MODEL}\ndef get_inputs():\n    {body}\n", torch.device("cpu"))
    made = sum(leaf.nbytes for leaf in tree_leaves(reference.inputs(0)) if torch.is_tensor(leaf))
    assert reference.input_bytes == made


def test_nothing_is_made_to_know_it() -> None:
    reference = Reference("p", f"{MODEL}\ndef get_inputs():\n    return [torch.rand(1 << 40)]\n", torch.device("cpu"))
    assert reference.input_bytes == 4 << 40
