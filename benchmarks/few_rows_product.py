"""Products of a decoding forward with few rows: the kernel of `dice.decoding.products` beside cuBLAS.

    python benchmarks/few_rows_product.py [--layers 24] [--rows 1 4 8]

For the four products of a layer in SDAR-4B's geometry, random bf16 weights: microseconds in a CUDA graph that goes through
the weights of all layers, so that none is in the cache, beside the time to read the weights at the copy bandwidth that is
measured in the same run. The last column chains the layers' products as decoding does, attention left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from decoding import machine, seconds_of
from torch import Tensor
from torch.nn import functional as F

from dice.decoding.kernels import add_rms_norm, gate
from dice.decoding.products import few_rows_product

HIDDEN, INTERMEDIATE, QKV, HEADS = 2560, 9728, 6144, 4096
SHAPES = {
    "qkv": (QKV, HIDDEN),
    "o": (HIDDEN, HEADS),
    "gate_up": (2 * INTERMEDIATE, HIDDEN),
    "down": (HIDDEN, INTERMEDIATE),
}
EPS = 1e-6
Product = Callable[[Tensor, Tensor, bool, Tensor | None], Tensor]


def cublas(x: Tensor, w: Tensor, gated: bool, residual: Tensor | None) -> Tensor:
    """cuBLAS, and a kernel of its own for the gate."""
    if residual is not None:
        return residual.addmm_(x, w.T)
    out = F.linear(x, w)
    return gate(out) if gated else out


def ours(x: Tensor, w: Tensor, gated: bool, residual: Tensor | None) -> Tensor:
    """csrc/small_product.cu."""
    return few_rows_product(x, w, gated=gated, residual=residual)


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
        for w in self.weights[name]:
            x = self.inputs[name]
            if name in ("qkv", "gate_up"):
                x = add_rms_norm(x, None, self.norm, EPS)[1]
            self.product(x, w, name == "gate_up", residual)

    def chain(self) -> None:
        """All products of all layers, each after the one that it waits for; what attention would give is given."""
        hidden = self.inputs["qkv"].clone()
        for qkv, o, gate_up, down in zip(*self.weights.values(), strict=True):
            self.product(add_rms_norm(hidden, None, self.norm, EPS)[1], qkv, False, None)
            hidden = self.product(self.inputs["o"], o, False, hidden)
            gated = self.product(add_rms_norm(hidden, None, self.norm, EPS)[1], gate_up, True, None)
            hidden = self.product(gated, down, False, hidden)


def random(*shape: int) -> Tensor:
    """N(0, 0.02) in bf16."""
    return (torch.randn(*shape, device="cuda") * 0.02).bfloat16()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 4, 8])
    args = parser.parse_args()
    bandwidth = machine()["bandwidth"]
    torch.manual_seed(0)
    weights = {name: [random(*shape) for _ in range(args.layers)] for name, shape in SHAPES.items()}
    norm = torch.ones(HIDDEN, device="cuda", dtype=torch.bfloat16)
    ideal = [2e6 * rows * columns / bandwidth for rows, columns in SHAPES.values()]
    print(f"copy {bandwidth / 1e12:.2f} TB/s; microseconds a product")
    print(f"{'rows':>4s} {'':8s}" + "".join(f"{name:>9s}" for name in (*SHAPES, "sum", "chain")))
    print(f"{'':4s} {'limit':8s}" + "".join(f"{value:9.1f}" for value in (*ideal, sum(ideal))))
    for rows in args.rows:
        inputs = {name: random(rows, shape[1]) for name, shape in SHAPES.items()}
        for label, product in (("cublas", cublas), ("ours", ours)):
            layers = Layers(weights, inputs, norm, product)
            times = [graph_seconds(partial(layers.one, name)) for name in SHAPES]
            found = [1e6 * value / args.layers for value in (*times, sum(times), graph_seconds(layers.chain))]
            print(f"{rows:4d} {label:8s}" + "".join(f"{value:9.1f}" for value in found), flush=True)


if __name__ == "__main__":
    main()
