import torch
import torch.nn as nn


class Model(nn.Module):
    """Convolution, ReLU, two-by-two max pooling."""

    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        nn.init.normal_(self.conv.bias, std=0.5)

    def forward(self, x):
        return torch.nn.functional.max_pool2d(torch.relu(self.conv(x)), 2)


batch_size = 2
in_channels = 4
out_channels = 7
height = 19
width = 24
kernel_size = 3


def get_inputs():
    return [torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
