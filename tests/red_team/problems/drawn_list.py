"""Rectified linear unit of each matrix of a list whose length and shapes are drawn."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, parts):
        return [torch.relu(part) for part in parts]


def get_inputs():
    count = int(torch.randint(1, 5, ()))
    return [[torch.randn(int(torch.randint(4, 30, ())), 16) for _ in range(count)]]


def get_init_inputs():
    return []
