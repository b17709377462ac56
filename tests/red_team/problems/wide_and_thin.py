"""A wide product, and a thin one behind it."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, wide, thin):
        return x @ wide @ thin


def get_inputs():
    return [torch.randn(64, 192), torch.randn(192, 192), torch.randn(192, 8)]


def get_init_inputs():
    return []
