import torch
import torch.nn as nn


class Model(nn.Module):
    """Layer normalisation of the last dimension."""

    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x):
        return self.norm(x)


batch_size = 4
length = 13
features = 119


def get_inputs():
    scale = 0.5 + torch.rand(batch_size, length, 1)
    return [torch.randn(batch_size, length, features) * scale + torch.randn(batch_size, length, 1)]


def get_init_inputs():
    return [features]
