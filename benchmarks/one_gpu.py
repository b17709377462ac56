"""What the benchmarks of models share: random weights, and the bandwidth and matrix rate of the GPU in the same run."""

from __future__ import annotations

from collections.abc import Callable

import torch

from dice.model.transformer import ModelConfig, Transformer

PROMPT = 892
"""Tokens of a prompt."""
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random_model(config: ModelConfig) -> Transformer:
    """N(0, 0.02) in bf16, on the GPU if there is one."""
    with torch.device("meta"):
        model = Transformer(config)
    model = model.to(torch.bfloat16).to_empty(device=DEVICE).eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1.0) if parameter.dim() == 1 else parameter.normal_(0, 0.02)
    return model


def seconds_of(work: Callable[[], object], repeats: int = 10) -> float:
    """Median seconds of GPU work."""
    times = []
    work()
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1000)
    return sorted(times)[repeats // 2]


def machine() -> dict[str, float]:
    """Copy bandwidth in bytes/s (read and write counted) and bf16 matrix rate in operations/s."""
    source = torch.randn(2**29, device="cuda")
    target = torch.empty_like(source)
    bandwidth = 2 * source.numel() * 4 / seconds_of(lambda: target.copy_(source))
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return {"bandwidth": bandwidth, "rate": 2 * 8192**3 / seconds_of(lambda: a @ b)}
