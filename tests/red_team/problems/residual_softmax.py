"""A softmax added to what it was made from."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x + torch.softmax(2.0 * x, dim=1)


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return []
