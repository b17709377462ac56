"""One step of Adam, written out."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, p, g, m, v):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        mh = m / (1 - 0.9**10)
        vh = v / (1 - 0.999**10)
        return p - 0.01 * mh / (torch.sqrt(vh) + 1e-8)


def get_inputs():
    return [torch.randn(64, 64), torch.randn(64, 64), torch.randn(64, 64) * 0.1, torch.rand(64, 64) * 0.1]


def get_init_inputs():
    return []
