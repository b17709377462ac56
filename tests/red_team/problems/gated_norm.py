"""A layer norm step by step, a gate and what the block began with."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(width) + 0.5)
        self.shift = nn.Parameter(torch.randn(width))

    def forward(self, x, gate, start):
        mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        normed = (x - mean) * torch.rsqrt(var + 1e-5) * self.gain + self.shift
        return start + normed * gate


def get_inputs():
    return [torch.randn(40, 64) for _ in range(3)]


def get_init_inputs():
    return [64]
