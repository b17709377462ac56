import torch
import torch.nn as nn


class Model(nn.Module):
    """The largest number so far in each row. Input and output are too large for a GPU's small blocks of memory, and small
    enough to share a segment of its allocator."""

    def forward(self, x):
        return torch.cummax(x, dim=1).values


def get_inputs():
    return [torch.randn(160, 2048)]


def get_init_inputs():
    return []
