"""Rows without mean and spread, written out."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        mu = x.mean(1, keepdim=True)
        sd = ((x - mu) ** 2).mean(1, keepdim=True).sqrt()
        return (x - mu) / (sd + 1e-5)


def get_inputs():
    return [torch.randn(64, 200)]


def get_init_inputs():
    return []
