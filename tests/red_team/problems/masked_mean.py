"""A mean over a row under a mask that lets everything through, as the problem draws it."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, mask):
        return (x * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)


def get_inputs():
    return [torch.randn(40, 96), torch.ones(40, 96)]


def get_init_inputs():
    return []
