import torch
import torch.nn as nn


class Model(nn.Module):
    """Two-dimensional convolution with zero padding."""

    def __init__(self, in_channels, out_channels, kernel_size, padding):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=padding)
        nn.init.normal_(self.conv.bias, std=0.5)

    def forward(self, x):
        return self.conv(x)


batch_size = 2
in_channels = 5
out_channels = 7
height = 15
width = 18
kernel_size = 3
padding = 1


def get_inputs():
    return [torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, padding]
