"""A cosine, and a branch that starts as hardly anything: a scale of a hundred thousandth for each channel."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.full((width,), 1e-5))

    def forward(self, x):
        return torch.cos(x) + self.scale * torch.exp(-x * x)


def get_inputs():
    return [torch.randn(50, 40)]


def get_init_inputs():
    return [40]
