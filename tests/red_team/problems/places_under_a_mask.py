"""The place of each open element of a mask among the open ones of its row."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, mask):
        return torch.cumsum(mask, dim=1)


def get_inputs():
    return [torch.rand(24, 150) < 0.6]


def get_init_inputs():
    return []
