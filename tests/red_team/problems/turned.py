"""A learned mixture of channels that begins as the identity, and a power that every call gets."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mixture = nn.Parameter(torch.eye(width))

    def forward(self, x, power):
        return torch.pow(torch.abs(x @ self.mixture) + 0.5, power)


def get_inputs():
    return [torch.randn(36, 20), 1.5]


def get_init_inputs():
    return [20]
