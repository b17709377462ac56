"""A linear layer whose weight begins as blocks on the diagonal."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, g, c):
        super().__init__()
        self.weight = nn.Parameter(torch.block_diag(*[torch.randn(c, c) / c**0.5 for _ in range(g)]))
        self.bias = nn.Parameter(torch.randn(g * c) * 0.1)

    def forward(self, x):
        return torch.relu(F.linear(x, self.weight, self.bias))


def get_inputs():
    return [torch.randn(48, 64)]


def get_init_inputs():
    return [4, 16]
