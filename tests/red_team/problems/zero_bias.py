"""A linear layer whose bias begins as zeros."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 24)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(20, 32)]


def get_init_inputs():
    return []
