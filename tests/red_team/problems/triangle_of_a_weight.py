"""Mixing along time by the lower triangle of a full weight."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, t):
        super().__init__()
        self.mix = nn.Parameter(torch.randn(t, t) / t**0.5)

    def forward(self, x):
        return torch.tril(self.mix) @ x


def get_inputs():
    return [torch.randn(3, 40, 20)]


def get_init_inputs():
    return [40]
