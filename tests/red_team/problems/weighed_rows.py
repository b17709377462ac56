"""Rows, each element by the weight that belongs to it: all ones where nothing is padded. A normalised mean."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, weights):
        return x * weights / weights.sum(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(32, 48), torch.ones(32, 48)]


def get_init_inputs():
    return []
