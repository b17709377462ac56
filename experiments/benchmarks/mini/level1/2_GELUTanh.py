import torch
import torch.nn as nn


class Model(nn.Module):
    """GELU with the tanh approximation."""

    def forward(self, x):
        return torch.nn.functional.gelu(x, approximate="tanh")


batch_size = 5
length = 29
features = 67


def get_inputs():
    return [torch.randn(batch_size, length, features)]


def get_init_inputs():
    return []
