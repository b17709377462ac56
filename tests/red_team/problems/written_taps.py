"""A filter for each channel along a sequence, tap by tap."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        self.taps = nn.Parameter(torch.randn(channels, taps) * 0.3)

    def forward(self, x):
        taps = self.taps.shape[1]
        y = torch.zeros_like(x[:, :, taps - 1 :])
        for k in range(taps):
            y += self.taps[:, k, None] * x[:, :, k : k + y.shape[2]]
        return y


def get_inputs():
    return [torch.randn(4, 16, 200)]


def get_init_inputs():
    return [16, 7]
