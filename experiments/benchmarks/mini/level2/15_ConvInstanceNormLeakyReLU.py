import torch
import torch.nn as nn


class Model(nn.Module):
    """Convolution without bias, affine instance normalisation, leaky ReLU."""

    def __init__(self, in_channels, out_channels, kernel_size, padding, negative_slope):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=padding, bias=False)
        self.norm = nn.InstanceNorm2d(out_channels, affine=True)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)
        self.negative_slope = negative_slope

    def forward(self, x):
        return torch.nn.functional.leaky_relu(self.norm(self.conv(x)), self.negative_slope)


batch_size = 2
in_channels = 5
out_channels = 8
height = 13
width = 15
kernel_size = 3
padding = 1
negative_slope = 0.2


def get_inputs():
    scale = 0.5 + torch.rand(batch_size, in_channels, 1, 1)
    return [torch.randn(batch_size, in_channels, height, width) * scale + torch.randn(batch_size, in_channels, 1, 1)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, padding, negative_slope]
