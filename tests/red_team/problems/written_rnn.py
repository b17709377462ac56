"""The last state of a plain recurrence, written out, without its negative numbers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.wi = nn.Parameter(torch.randn(h, d) / d**0.5)
        self.wh = nn.Parameter(torch.randn(h, h) / h**0.5)
        self.bi = nn.Parameter(torch.randn(h) * 0.1)
        self.bh = nn.Parameter(torch.randn(h) * 0.1)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.wh.shape[0])
        for t in range(x.shape[1]):
            h = torch.tanh(x[:, t] @ self.wi.t() + self.bi + h @ self.wh.t() + self.bh)
        return torch.relu(h)


def get_inputs():
    return [torch.randn(6, 20, 24)]


def get_init_inputs():
    return [24, 40]
