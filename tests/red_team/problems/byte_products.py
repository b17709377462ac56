"""Products of all pairs of rows, of whole numbers of eight bits."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return (a.int().unsqueeze(1) * b.int().unsqueeze(0)).sum(dim=2)


def get_inputs():
    return [torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((12, 64), (20, 64))]


def get_init_inputs():
    return []
