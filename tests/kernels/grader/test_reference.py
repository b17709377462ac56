"""How large a problem's inputs are is known before they are made."""

from __future__ import annotations

import pytest
import torch
from torch.utils._pytree import tree_leaves

from dice.errors import DiceError
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


PROGRAM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(width, width))

    def forward(self, x):
        BODY

def get_init_inputs():
    return [1 << 20]

def get_inputs():
    return [torch.rand(1 << 10, 1 << 20)]
"""
GIB = 1 << 30
# The last: views make nothing new.
SIZES = {
    "return x @ self.weight": (4, 4096, 4),
    "return x.sum()": (4, 4096, 0),
    "return (x.repeat(2, 1) * 2).sum()": (4, 4096, 8),  # on its way
    "return x + 1, x + 2, x + 3": (4, 4096, 12),
    "return x.view(1, 1 << 10, 1 << 20).expand(1 << 10, -1, -1).select(0, 0).sum(1)": (4, 4096, 4),
}


@pytest.mark.parametrize("body", SIZES)
def test_sizes_are_known_before_anything_is_made(body: str) -> None:
    sizes = Reference("p", PROGRAM.replace("BODY", body), torch.device("cpu")).sizes
    assert (sizes.inputs // GIB, sizes.weights // GIB, sizes.outputs // GIB) == SIZES[body]


def test_where_a_model_needs_values_its_outputs_count_as_large_as_its_inputs() -> None:
    text = PROGRAM.replace("1 << 20", "8").replace("BODY", "return x[: int(x.sum().item())]")
    sizes = Reference("p", text, torch.device("cpu")).sizes
    assert (sizes.inputs, sizes.weights, sizes.outputs) == (8 << 12, 0, 8 << 12)


def test_what_a_program_keeps_for_later_is_no_fake_tensor() -> None:
    kept = "\nKEPT = []\n\ndef get_inputs():\n    KEPT.append(torch.rand(4))\n    return [KEPT[0]]\n"
    reference = Reference("p", MODEL + kept, torch.device("cpu"))
    assert reference.sizes.inputs == reference.input_bytes == 16
    assert type(reference.inputs(0)[0]) is torch.Tensor


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", torch.OutOfMemoryError),
        ("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(...)`", DiceError),
    ],
)
def test_a_library_that_finds_the_card_full_is_no_fault_of_the_problem(message: str, expected: type[Exception]) -> None:
    """A candidate can fill the card: the command must not end as for a file that is no problem."""
    text = PROGRAM.replace("1 << 20", "8").replace("BODY", f"raise RuntimeError({message!r})")
    reference = Reference("p", text, torch.device("cpu"))
    with pytest.raises(expected, match="CUBLAS"):
        reference.run(reference.model(0), reference.inputs(0), 0)
