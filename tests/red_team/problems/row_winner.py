"""Place of the largest number of each row."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.argmax(x, dim=1)


def get_inputs():
    return [torch.randn(48, 120)]


def get_init_inputs():
    return []
