"""Gains of a spectrum that begin as ones, and a ReLU."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.gains = nn.Parameter(torch.ones(n, dtype=torch.complex64))

    def forward(self, x):
        return torch.relu(torch.fft.ifft(torch.fft.fft(x) * self.gains).real)


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return [64]
