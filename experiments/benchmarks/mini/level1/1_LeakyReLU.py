import torch
import torch.nn as nn


class Model(nn.Module):
    """Leaky ReLU of every element."""

    def __init__(self, negative_slope):
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x):
        return torch.nn.functional.leaky_relu(x, self.negative_slope)


batch_size = 37
features = 251
negative_slope = 0.1


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return [negative_slope]
