"""Two layers, with a GELU between them that is written out."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.first = nn.Parameter(torch.randn(hidden, width) * 0.2)
        self.second = nn.Parameter(torch.randn(width, hidden) * 0.2)

    def forward(self, x):
        h = x @ self.first.t()
        h = 0.5 * h * (1 + torch.tanh(0.7978845608028654 * (h + 0.044715 * h**3)))
        return h @ self.second.t()


def get_inputs():
    return [torch.randn(48, 16)]


def get_init_inputs():
    return [16, 64]
