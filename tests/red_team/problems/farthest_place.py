"""Place of the largest number of all."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.argmax(x.flatten()).reshape(1)


def get_inputs():
    return [torch.randn(96, 64)]


def get_init_inputs():
    return []
