"""Writes docs/reference/kernel-pages.md: the pages of `dice verify kernel.py --reference model.py` for ten kernels.

    python benchmarks/kernel_pages.py [--out FILE]

A right kernel, and nine that differ from it in the lines that the page shows. They run on the CPU back end with a fixed
seed, so anybody gets the same pages.
"""

from __future__ import annotations

import argparse
import difflib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dice.kernels.api import Judging, Limits, Machine, open_pool
from dice.kernels.page.one_kernel import Files, judge
from dice.kernels.page.text import render

REFERENCE = '''import torch
import torch.nn as nn


class Model(nn.Module):
    """Each row without its mean."""

    def forward(self, x):
        return x - x.mean(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(100, 100)]


def get_init_inputs():
    return []
'''
RIGHT = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
__global__ void centre_rows(const float* x, float* y, int n) {
    __shared__ float part[128];
    int row = blockIdx.x, t = threadIdx.x;
    float sum = 0.0f;
    for (int i = t; i < n; i += blockDim.x) sum += x[row * n + i];
    part[t] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    for (int i = t; i < n; i += blockDim.x) {
        y[row * n + i] = x[row * n + i] - part[0] / n;
    }
}

torch::Tensor centre(torch::Tensor x) {
    auto y = torch::empty_like(x);
    centre_rows<<<x.size(0), 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
"""

extension = load_inline(
    name="centre",
    cpp_sources="torch::Tensor centre(torch::Tensor x);",
    cuda_sources=source,
    functions=["centre"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.centre(x)
'''


@dataclass(frozen=True)
class Example:
    """A kernel that differs from the right one by one replacement."""

    title: str
    told: str
    old: str = ""
    new: str = ""


EXAMPLES = (
    Example("Right", "On a GPU the page also has times, and what the kernel uses of the card."),
    Example(
        "A wrong tail",
        "The last four columns belong to no full warp.",
        "i < n; i += blockDim.x) {",
        "i < n / 32 * 32; i += blockDim.x) {",
    ),
    Example(
        "Transposed", "Rows and columns are swapped when they are written.", "y[row * n + i] =", "y[i * n + row] ="
    ),
    Example(
        "A race",
        "All threads of a block write one place, and the last one wins. On a GPU nobody knows which, so the CPU back end "
        "says nothing about the value.",
        "part[t] = sum;",
        "part[0] = sum;",
    ),
    Example(
        "A missing barrier",
        "Threads read what others may not have written yet.",
        "    part[t] = sum;\n    __syncthreads();\n",
        "    part[t] = sum;\n",
    ),
    Example(
        "Memory that was never written",
        "A block has 64 threads now, and half of the shared array is what was there before.",
        "<<<x.size(0), 128>>>",
        "<<<x.size(0), 64>>>",
    ),
    Example("A compile error", "The line is that of the author's file.", "float sum = 0.0f;", "float sum = 0.0f"),
    Example("Another type", "Right values in fp64.", "    return y;\n}", "    return y.to(torch::kFloat64);\n}"),
    Example("A refused flag", "No build is tried.", '["-O3"]', '["-O3", "-ccbin=./my-gcc"]'),
    Example(
        "Deceptive",
        "The kernel is built, and PyTorch does the work.",
        "return extension.centre(x)",
        "return x - x.mean(dim=1, keepdim=True)",
    ),
)
HEAD = """# Pages of ten kernels

What `dice verify kernel.py --reference model.py --backend cpu` prints for a right kernel, and for nine that differ from it
in the lines shown. This page is written by `benchmarks/kernel_pages.py`, which runs them all. The guide:
[one kernel](../guides/one-kernel.md).
"""


def code_of(example: Example) -> str:
    """The kernel's file. Raises ValueError where the replacement finds not one place."""
    if not example.old:
        return RIGHT
    if RIGHT.count(example.old) != 1:
        raise ValueError(f"{example.title}: '{example.old}' is not there once")
    return RIGHT.replace(example.old, example.new)


def difference(example: Example) -> str:
    """The lines that the kernel changes, as a unified diff without its head."""
    lines = difflib.unified_diff(RIGHT.splitlines(), code_of(example).splitlines(), n=0, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def document() -> str:
    """The whole page."""
    parts = [HEAD, f"The problem, `model.py`:\n\n```python\n{REFERENCE}```\n"]
    judging = Judging(protocols=("paper", "strict"), explain=True, seed=1)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_pool("cpu", judging, Limits(), Machine(jobs=1, threads=1), 1) as pool,
    ):
        files = Files(Path(folder, "kernel.py"), Path(folder, "model.py"))
        files.reference.write_text(REFERENCE, encoding="utf-8")
        for number, example in enumerate(EXAMPLES, 1):
            files.kernel.write_text(code_of(example), encoding="utf-8")
            page = judge(files, pool).model_copy(update={"kernel": "kernel.py", "reference": "model.py"})
            host = page.verdicts[0].host.cpu
            shown = render(page).replace(host, "a CPU")
            change = f"```diff\n{difference(example)}\n```" if example.old else f"```python\n{RIGHT}```"
            parts.append(f"## {number}. {example.title}\n\n{example.told}\n\n{change}\n\n```text\n{shown}```\n")
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Write the pages of ten kernels.")
    parser.add_argument("--out", default="docs/reference/kernel-pages.md")
    path = Path(parser.parse_args().out)
    path.write_text(document(), encoding="utf-8")


if __name__ == "__main__":  # the pool's workers import this file
    main()
