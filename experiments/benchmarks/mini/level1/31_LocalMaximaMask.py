import torch
import torch.nn as nn


class Model(nn.Module):
    """Which elements of a periodic signal exceed both neighbours."""

    def forward(self, x):
        return (x > torch.roll(x, 1, dims=-1)) & (x > torch.roll(x, -1, dims=-1))


rows = 29
columns = 211


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
