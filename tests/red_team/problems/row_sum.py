"""Sum of each row."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=1)


def get_inputs():
    return [torch.randn(32, 200)]


def get_init_inputs():
    return []
