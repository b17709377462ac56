import torch
import torch.nn as nn


class Model(nn.Module):
    """One-dimensional convolution with stride and dilation."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, dilation):
        super().__init__()
        self.conv = nn.Conv1d(in_channels, out_channels, kernel_size, stride=stride, dilation=dilation)
        nn.init.normal_(self.conv.bias, std=0.5)

    def forward(self, x):
        return self.conv(x)


batch_size = 3
in_channels = 6
out_channels = 10
length = 77
kernel_size = 5
stride = 2
dilation = 3


def get_inputs():
    return [torch.randn(batch_size, in_channels, length)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, dilation]
