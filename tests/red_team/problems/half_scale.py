"""A problem whose own type is half."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * 2.5


def get_inputs():
    return [torch.randn(32, 64, dtype=torch.float16)]


def get_init_inputs():
    return []
