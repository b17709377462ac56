import torch
import torch.nn as nn


class Model(nn.Module):
    """Convolution, hard swish, mean over the image."""

    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        nn.init.normal_(self.conv.bias, std=0.5)

    def forward(self, x):
        return torch.nn.functional.hardswish(self.conv(x)).mean(dim=(2, 3))


batch_size = 5
in_channels = 4
out_channels = 14
height = 13
width = 12
kernel_size = 3


def get_inputs():
    return [torch.randn(batch_size, in_channels, height, width) + 2.0 * torch.randn(batch_size, in_channels, 1, 1)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
