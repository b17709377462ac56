import torch
import torch.nn as nn


class Model(nn.Module):
    """A softmax of many numbers, whose shares are small, times a number."""

    def forward(self, x, factor: float):
        return torch.softmax(x, dim=-1) * factor


def get_inputs():
    return [torch.rand(12, 600), 1.5]


def get_init_inputs():
    return []
