"""Product of two matrices."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(33, 64), torch.randn(64, 40)]


def get_init_inputs():
    return []
