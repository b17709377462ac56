"""A convolution that begins near an identity."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, padding=1)
        nn.init.dirac_(self.conv.weight)
        with torch.no_grad():
            self.conv.weight.mul_(1 + 0.2 * torch.randn_like(self.conv.weight))

    def forward(self, x):
        return F.relu(self.conv(x))


def get_inputs():
    return [torch.randn(2, 8, 16, 16)]


def get_init_inputs():
    return [8]
