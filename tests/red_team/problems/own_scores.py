"""Distances between two sets of points, which every draw makes equal."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, points, others):
        return (points[:, None, :] - others[None, :, :]).abs().sum(dim=2)


def get_inputs():
    points = torch.randn(40, 9)
    return [points, points.clone()]


def get_init_inputs():
    return []
