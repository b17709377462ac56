"""Rows gathered by integer index."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)

    def forward(self, index):
        return self.table(index)


def get_inputs():
    return [torch.randint(0, 50, (64,))]


def get_init_inputs():
    return [50, 16]
