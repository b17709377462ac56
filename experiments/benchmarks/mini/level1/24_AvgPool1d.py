import torch
import torch.nn as nn


class Model(nn.Module):
    """One-dimensional average pooling; the padding counts."""

    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.pool = nn.AvgPool1d(kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        return self.pool(x)


batch_size = 4
channels = 11
length = 83
kernel_size = 6
stride = 3
padding = 3


def get_inputs():
    return [torch.randn(batch_size, channels, length)]


def get_init_inputs():
    return [kernel_size, stride, padding]
