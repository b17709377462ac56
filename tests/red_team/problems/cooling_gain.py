"""Columns times a weight that shrinks with each call, by a number that the module counts."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(width) + 0.5)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * (self.gain * 0.98**self.calls)


def get_inputs():
    return [torch.randn(32, 80)]


def get_init_inputs():
    return [80]
