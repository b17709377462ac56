"""Rectified linear unit of a matrix."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(48, 100)]


def get_init_inputs():
    return []
