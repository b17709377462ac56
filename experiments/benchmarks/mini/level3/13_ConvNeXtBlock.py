import torch
import torch.nn as nn


class Model(nn.Module):
    """ConvNeXt block: depthwise convolution, channel LayerNorm, two-layer network, layer scale, residual."""

    def __init__(self, channels, hidden_channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)
        self.expand = nn.Linear(channels, hidden_channels)
        self.reduce = nn.Linear(hidden_channels, channels)
        nn.init.normal_(self.expand.weight, std=1.5 * channels**-0.5)
        nn.init.normal_(self.reduce.weight, std=1.5 * hidden_channels**-0.5)
        nn.init.normal_(self.reduce.bias, std=0.3)
        self.scale = nn.Parameter(0.5 + torch.rand(channels))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.reduce(torch.nn.functional.gelu(self.expand(y)))
        return x + y.permute(0, 3, 1, 2)


batch_size = 2
channels = 12
hidden_channels = 26
height = 9
width = 11


def get_inputs():
    return [torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels, hidden_channels]
