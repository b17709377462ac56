import torch
import torch.nn as nn


class Model(nn.Module):
    """Depthwise two-dimensional convolution with stride."""

    def __init__(self, channels, kernel_size, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size, stride=stride, padding=padding, groups=channels)

    def forward(self, x):
        return self.conv(x)


batch_size = 2
channels = 9
height = 23
width = 20
kernel_size = 5
stride = 2
padding = 2


def get_inputs():
    return [torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels, kernel_size, stride, padding]
