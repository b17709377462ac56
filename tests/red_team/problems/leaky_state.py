import torch
import torch.nn as nn


class Model(nn.Module):
    """One step of a leaky cell. Its state begins as zeros, so at first the new state is the input."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x, state):
        state = 0.8 * state + x
        return torch.sigmoid(state @ self.weight), state


def get_inputs():
    return [torch.randn(20, 32), torch.zeros(20, 32)]


def get_init_inputs():
    return [32]
