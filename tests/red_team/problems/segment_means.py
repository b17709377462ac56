"""Means of the rows of each segment, beside the number of its rows."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, owner, counts):
        sums = torch.zeros(counts.shape[0], x.shape[1], device=x.device).index_add_(0, owner, x)
        return sums / (counts[:, None] + 1)


def get_inputs():
    owner = torch.randint(0, 10, (72,)).sort().values
    return [torch.randn(72, 24), owner, torch.bincount(owner, minlength=10)]


def get_init_inputs():
    return []
