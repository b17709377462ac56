"""Integer and boolean results."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        mask = x > 0
        return mask, mask.sum(dim=1)


def get_inputs():
    return [torch.randn(20, 80)]


def get_init_inputs():
    return []
