"""How near rows are to each other, by differences of all pairs."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y):
        squares = (x[:, None] - y[None]).square().sum(2)
        return torch.exp(-0.1 * squares.sqrt())


def get_inputs():
    return [torch.randn(48, 64), torch.randn(56, 64)]


def get_init_inputs():
    return []
