"""Sums of rows of different lengths."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, lengths):
        places = torch.arange(x.shape[1], device=x.device)
        return torch.where(places < lengths[:, None], x, torch.zeros_like(x)).sum(1)


def get_inputs():
    return [torch.randn(24, 96), torch.randint(1, 97, (24,))]


def get_init_inputs():
    return []
