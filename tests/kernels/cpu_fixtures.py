"""The CUDA sources in tests/kernels/cpu/fixtures, built for the CPU and loaded."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch

from dice.kernels.builder.builder import Builder
from dice.kernels.candidate.extension_call import load_inline
from dice.kernels.candidate.extension_loader import load_extension

Load = Callable[[str], ModuleType]
"""Of the name of a source."""

_FOLDER = Path(__file__).parent / "cpu" / "fixtures"
_FUNCTION = re.compile(r"^((?:torch::Tensor|std::vector<[\w:]+>|void|int64_t) (\w+)\([^)]*\)) *\{", re.MULTILINE)


def close(left: torch.Tensor, right: torch.Tensor, tolerance: float = 1e-4) -> None:
    """Assert it of two tensors of any types, absolutely and relatively."""
    torch.testing.assert_close(left.double(), right.double(), atol=tolerance, rtol=tolerance)


def loaded(builder: Builder, name: str) -> ModuleType:
    """The module of a source, with each function bound that takes and gives what PyTorch binds."""
    source = (_FOLDER / f"{name}.cu").read_text()
    found = [match.groups() for match in _FUNCTION.finditer(source)]
    prototypes = "".join(f"{prototype};\n" for prototype, _ in found)
    functions = [function for _, function in found]
    result = builder.build(load_inline("sample", prototypes, source, functions=functions))
    assert result.status == "built", result.message
    module = load_extension(result.path or "", name)
    assert isinstance(module, ModuleType)
    return module
