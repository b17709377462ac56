import torch
import torch.nn as nn


class Model(nn.Module):
    """Steps made positive by softplus, times a signal, summed over time."""

    def forward(self, steps, signal):
        return torch.cumsum(torch.nn.functional.softplus(steps) * signal, dim=1)


batch_size = 3
length = 58
channels = 26


def get_inputs():
    return [torch.randn(batch_size, length, channels), torch.randn(batch_size, length, channels)]


def get_init_inputs():
    return []
