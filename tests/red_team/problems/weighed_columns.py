"""The mean difference of two matrices, its columns weighed by a buffer that begins as ones."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("shares", torch.ones(width))

    def forward(self, a, b):
        far = (a - b).abs() * self.shares
        return far.sum() / (self.shares.sum() * a.shape[0])


def get_inputs():
    return [torch.randn(24, 6) * torch.linspace(1.0, 2.2, 6), torch.randn(24, 6)]


def get_init_inputs():
    return [6]
