"""A linear layer and a PReLU, whose slope is a quarter at first."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 24)
        self.act = nn.PReLU()

    def forward(self, x):
        return self.act(self.linear(x))


def get_inputs():
    return [torch.randn(20, 32)]


def get_init_inputs():
    return [32]
