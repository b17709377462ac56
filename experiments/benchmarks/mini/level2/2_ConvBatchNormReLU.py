import torch
import torch.nn as nn


class Model(nn.Module):
    """Convolution, batch normalisation with stored statistics, ReLU."""

    def __init__(self, in_channels, out_channels, kernel_size, padding):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=padding, bias=False)
        self.weight = nn.Parameter(1.0 + 0.3 * torch.randn(out_channels))
        self.bias = nn.Parameter(0.3 + 0.3 * torch.randn(out_channels))
        self.register_buffer("running_mean", 0.3 * torch.randn(out_channels))
        self.register_buffer("running_var", 0.3 + torch.rand(out_channels))

    def forward(self, x):
        x = self.conv(x)
        x = torch.nn.functional.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias)
        return torch.relu(x)


batch_size = 2
in_channels = 4
out_channels = 9
height = 14
width = 17
kernel_size = 3
padding = 1


def get_inputs():
    return [torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, padding]
