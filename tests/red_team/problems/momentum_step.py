"""One step with momentum, written out."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, p, g, m):
        m = 0.9 * m + g
        return p - 0.1 * m


def get_inputs():
    return [torch.randn(64, 64), torch.randn(64, 64), torch.randn(64, 64)]


def get_init_inputs():
    return []
