import torch
import torch.nn as nn


class Model(nn.Module):
    """Grouped convolution, leaky ReLU, channel shuffle."""

    def __init__(self, in_channels, out_channels, kernel_size, padding, groups):
        super().__init__()
        self.groups = groups
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=padding, groups=groups)
        nn.init.normal_(self.conv.bias, std=0.5)

    def forward(self, x):
        x = torch.nn.functional.leaky_relu(self.conv(x), 0.1)
        batch, channels, height, width = x.shape
        x = x.view(batch, self.groups, channels // self.groups, height, width)
        return x.transpose(1, 2).reshape(batch, channels, height, width)


batch_size = 2
in_channels = 6
out_channels = 12
height = 13
width = 11
kernel_size = 3
padding = 1
groups = 3


def get_inputs():
    return [2.0 * torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, padding, groups]
