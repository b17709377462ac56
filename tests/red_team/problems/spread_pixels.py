import torch
import torch.nn as nn


class Model(nn.Module):
    """Channels become pixels: nothing is computed."""

    def forward(self, x):
        n, c, h, w = x.shape
        return x.view(n, c // 4, 2, 2, h, w).permute(0, 1, 4, 2, 5, 3).reshape(n, c // 4, 2 * h, 2 * w)


def get_inputs():
    return [torch.randn(2, 8, 9, 11)]


def get_init_inputs():
    return []
