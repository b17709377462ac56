import torch
import torch.nn as nn


class Model(nn.Module):
    """Sum over the last dimension."""

    def forward(self, x):
        return x.sum(dim=-1)


batch_size = 6
rows = 23
columns = 101


def get_inputs():
    return [torch.randn(batch_size, rows, columns)]


def get_init_inputs():
    return []
