"""Two outputs of different shapes."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=1), torch.amax(x, dim=1)


def get_inputs():
    return [torch.randn(16, 96)]


def get_init_inputs():
    return []
