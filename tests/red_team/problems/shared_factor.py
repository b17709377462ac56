"""Products of a batch with one factor that all its matrices share."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, factor):
        return torch.bmm(x, factor.expand(x.shape[0], -1, -1))


def get_inputs():
    return [torch.randn(16, 8, 24), torch.randn(24, 20)]


def get_init_inputs():
    return []
