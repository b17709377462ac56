"""Rows without their centre, which is a mean that every call moves."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width, pace):
        super().__init__()
        self.pace = pace
        self.register_buffer("centre", torch.zeros(width))

    def forward(self, x):
        self.centre.lerp_(x.mean(dim=0), self.pace)
        return x - self.centre


def get_inputs():
    return [torch.randn(40, 96) + 1.5]


def get_init_inputs():
    return [96, 0.05]
