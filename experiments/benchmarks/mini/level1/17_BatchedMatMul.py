import torch
import torch.nn as nn


class Model(nn.Module):
    """Batched matrix product."""

    def forward(self, a, b):
        return torch.bmm(a, b)


batch_size = 6
rows = 19
inner = 33
columns = 22


def get_inputs():
    return [torch.randn(batch_size, rows, inner) / inner**0.5, torch.randn(batch_size, inner, columns)]


def get_init_inputs():
    return []
