# pyright: reportCallIssue=false, reportArgumentType=false, reportMissingImports=false, reportIndexIssue=false
# (the launchers of Triton kernels have no static types)
"""Products of a decoding forward with few rows: `dice.decoding.products` beside cuBLAS and beside reading alone.

    python benchmarks/few_rows_product.py [--layers 24] [--rows 4 8 16 32 64]

For the products of a layer in SDAR-4B's geometry and for its head, random bf16 weights: microseconds in a CUDA graph that
goes through the weights of all layers, so that none is in the cache. `limit` is bytes over the copy bandwidth of the same
run, `read` a kernel that reads the weights and does nothing with them. The last column chains the layers' products as
decoding does, attention left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import triton
import triton.language as tl
from one_gpu import machine, seconds_of
from torch import Tensor
from torch.nn import functional as F

from dice.decoding.kernels import add_rms_norm, gate
from dice.decoding.products import product

HIDDEN, INTERMEDIATE, QKV, HEADS, VOCABULARY = 2560, 9728, 6144, 4096, 151936
SHAPES = {
    "qkv": (QKV, HIDDEN),
    "o": (HIDDEN, HEADS),
    "gate_up": (2 * INTERMEDIATE, HIDDEN),
    "down": (HIDDEN, INTERMEDIATE),
}
EPS = 1e-6
Product = Callable[[Tensor, Tensor, Tensor | None, bool, Tensor | None], Tensor]


def cublas(x: Tensor, w: Tensor, norm: Tensor | None, gated: bool, residual: Tensor | None):
    """cuBLAS, and kernels of their own for norm and gate."""
    if norm is not None:
        x = add_rms_norm(x, None, norm, EPS)[1]
    if residual is not None:
        return residual.addmm_(x, w.T)
    out = F.linear(x, w)
    return gate(out) if gated else out


def ours(x: Tensor, w: Tensor, norm: Tensor | None, gated: bool, residual: Tensor | None):
    """As decoding does it."""
    return product(x, w, norm=norm, eps=EPS, gated=gated, residual=residual)


@triton.jit
def _read(w, out, size, BLOCK: tl.constexpr):
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(tl.program_id(0) * BLOCK, size, tl.num_programs(0) * BLOCK):
        place = start + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.load(w + place, mask=place < size, other=0.0).to(tl.float32))
    tl.store(out + tl.program_id(0), tl.max(best, 0))


def read(weights: list[Tensor], out: Tensor) -> None:
    """Every weight once."""
    for w in weights:
        _read[(len(out),)](w, out, w.numel(), BLOCK=4096, num_warps=8)


def graph_seconds(work: Callable[[], object]) -> float:
    """Median seconds of a replay."""
    work()
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return seconds_of(graph.replay, 7)


@dataclass
class Layers:
    """Weights of all layers and inputs of some rows."""

    weights: dict[str, list[Tensor]]
    inputs: dict[str, Tensor]
    norm: Tensor
    product: Product

    def one(self, name: str) -> None:
        """One product, in every layer."""
        residual = torch.zeros_like(self.inputs["qkv"]) if name in ("o", "down") else None
        norm = self.norm if name in ("qkv", "gate_up", "head") else None
        for w in self.weights[name]:
            self.product(self.inputs[name], w, norm, name == "gate_up", residual)

    def chain(self) -> None:
        """All products of all layers, each after the one that it waits for; what attention would give is given."""
        hidden = self.inputs["qkv"].clone()
        for qkv, o, gate_up, down in zip(*(self.weights[name] for name in SHAPES), strict=True):
            self.product(hidden, qkv, self.norm, False, None)
            hidden = self.product(self.inputs["o"], o, None, False, hidden)
            gated = self.product(hidden, gate_up, self.norm, True, None)
            hidden = self.product(gated, down, None, False, hidden)


def random(*shape: int) -> Tensor:
    """N(0, 0.02) in bf16."""
    return (torch.randn(*shape, device="cuda") * 0.02).bfloat16()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--rows", nargs="+", type=int, default=[4, 8, 16, 32, 64])
    args = parser.parse_args()
    bandwidth = machine()["bandwidth"]
    torch.manual_seed(0)
    weights = {name: [random(*shape) for _ in range(args.layers)] for name, shape in SHAPES.items()}
    weights["head"] = [random(VOCABULARY, HIDDEN)] * 3
    norm = torch.ones(HIDDEN, device="cuda", dtype=torch.bfloat16)

    def line(rows: object, label: str, times: dict[str, float], chain: float | None = None) -> None:
        layer = sum(times[name] for name in SHAPES)
        found = [*(times[name] for name in SHAPES), layer, chain if chain is not None else layer, times["head"]]
        print(f"{rows!s:>4s} {label:8s}" + "".join(f"{1e6 * value:9.1f}" for value in found), flush=True)

    print(f"copy {bandwidth / 1e12:.2f} TB/s; microseconds a product")
    print(f"{'rows':>4s} {'':8s}" + "".join(f"{name:>9s}" for name in (*SHAPES, "sum", "chain", "head")))
    line("", "limit", {name: 2 * each[0].numel() / bandwidth for name, each in weights.items()})
    out = torch.empty(132 * 8, device="cuda")
    line("", "read", {name: graph_seconds(partial(read, each, out)) / len(each) for name, each in weights.items()})
    for rows in args.rows:
        inputs = {name: random(rows, each[0].shape[1]) for name, each in weights.items()}
        for label, way in (("cublas", cublas), ("ours", ours)):
            layers = Layers(weights, inputs, norm, way)
            times = {name: graph_seconds(partial(layers.one, name)) / len(each) for name, each in weights.items()}
            line(rows, label, times, graph_seconds(layers.chain) / args.layers)


if __name__ == "__main__":
    main()
