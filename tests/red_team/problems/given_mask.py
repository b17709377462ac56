"""Softmax under a mask of floating ones and zeros."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, mask):
        return torch.softmax(x.masked_fill(mask == 0, -1e9), dim=-1)


def get_inputs():
    return [torch.randn(24, 64), (torch.rand(24, 64) > 0.3).float()]


def get_init_inputs():
    return []
