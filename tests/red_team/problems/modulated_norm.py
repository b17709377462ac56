"""A layer norm step by step without weights; each row's own gain and shift follow."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, gain, shift):
        mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) * torch.rsqrt(var + 1e-6) * gain + shift


def get_inputs():
    return [torch.randn(40, 64) for _ in range(3)]


def get_init_inputs():
    return []
