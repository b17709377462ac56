"""A step of a cell whose state is zero before the first one, for a sequence's first token."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.mix = nn.Parameter(torch.randn(size, size) * 0.3)

    def forward(self, x, state):
        return 0.5 * state + torch.tanh(x + state @ self.mix)


def get_inputs():
    return [torch.randn(24, 40), torch.zeros(24, 40)]


def get_init_inputs():
    return [40]
