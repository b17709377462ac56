"""Softmax over rows that are long enough for every value to be tiny."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(8, 1024)]


def get_init_inputs():
    return []
