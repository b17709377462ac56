"""Scores under a boolean mask that is true everywhere, as the problem draws it."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, mask):
        return torch.where(mask, x * 2.0, torch.full_like(x, -1.0))


def get_inputs():
    return [torch.randn(40, 96), torch.ones(40, 96, dtype=torch.bool)]


def get_init_inputs():
    return []
