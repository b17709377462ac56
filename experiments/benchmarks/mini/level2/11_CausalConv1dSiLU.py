import torch
import torch.nn as nn


class Model(nn.Module):
    """Causal depthwise convolution over time and SiLU."""

    def __init__(self, channels, kernel_size):
        super().__init__()
        self.kernel_size = kernel_size
        self.conv = nn.Conv1d(channels, channels, kernel_size, groups=channels)

    def forward(self, x):
        x = torch.nn.functional.pad(x, (self.kernel_size - 1, 0))
        return torch.nn.functional.silu(self.conv(x))


batch_size = 3
channels = 18
length = 61
kernel_size = 4


def get_inputs():
    return [2.0 * torch.randn(batch_size, channels, length)]


def get_init_inputs():
    return [channels, kernel_size]
