import torch
import torch.nn as nn


class Model(nn.Module):
    """A branch whose gates begin as zeros."""

    def __init__(self, width):
        super().__init__()
        self.mix = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.gate = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return x.sin() + self.gate * (x @ self.mix)


def get_inputs():
    return [torch.randn(20, 32)]


def get_init_inputs():
    return [32]
