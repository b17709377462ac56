import torch
import torch.nn as nn


class Model(nn.Module):
    """Transposed convolution and tanh."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        nn.init.normal_(self.conv.bias, std=0.3)

    def forward(self, x):
        return torch.tanh(self.conv(x))


batch_size = 2
in_channels = 6
out_channels = 4
height = 9
width = 11
kernel_size = 4
stride = 2
padding = 1


def get_inputs():
    return [1.5 * torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding]
