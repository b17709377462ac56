import torch
import torch.nn as nn


class Model(nn.Module):
    """Group normalisation of an image."""

    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x):
        return self.norm(x)


batch_size = 3
groups = 4
channels = 12
height = 9
width = 11


def get_inputs():
    scale = 0.5 + torch.rand(batch_size, channels, 1, 1)
    return [torch.randn(batch_size, channels, height, width) * scale + torch.randn(batch_size, channels, 1, 1)]


def get_init_inputs():
    return [groups, channels]
