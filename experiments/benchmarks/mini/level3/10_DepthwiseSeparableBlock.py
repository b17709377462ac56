import torch
import torch.nn as nn


class Model(nn.Module):
    """Depthwise and pointwise convolutions, each with stored batch normalisation and ReLU6."""

    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self.depthwise = nn.Conv2d(
            in_channels, in_channels, 3, stride=stride, padding=1, groups=in_channels, bias=False
        )
        self.pointwise = nn.Conv2d(in_channels, out_channels, 1, bias=False)
        nn.init.normal_(self.depthwise.weight, std=0.8)
        nn.init.normal_(self.pointwise.weight, std=0.7 * in_channels**-0.5)
        for name, channels in (("first", in_channels), ("second", out_channels)):
            self.register_parameter(f"{name}_weight", nn.Parameter(1.0 + 0.3 * torch.randn(channels)))
            self.register_parameter(f"{name}_bias", nn.Parameter(1.0 + 0.5 * torch.randn(channels)))
            self.register_buffer(f"{name}_mean", 0.3 * torch.randn(channels))
            self.register_buffer(f"{name}_var", 0.5 + torch.rand(channels))

    def forward(self, x):
        x = torch.nn.functional.batch_norm(
            self.depthwise(x), self.first_mean, self.first_var, self.first_weight, self.first_bias
        )
        x = torch.nn.functional.batch_norm(
            self.pointwise(torch.nn.functional.relu6(x)),
            self.second_mean,
            self.second_var,
            self.second_weight,
            self.second_bias,
        )
        return torch.nn.functional.relu6(x)


batch_size = 2
in_channels = 9
out_channels = 13
height = 15
width = 12
stride = 2


def get_inputs():
    return [1.5 * torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, stride]
