"""Scores of counts under shares, of which each row sums to one at first."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, topics, words):
        super().__init__()
        drawn = torch.rand(topics, words) + 0.05
        self.shares = nn.Parameter(drawn / drawn.sum(dim=1, keepdim=True))

    def forward(self, counts):
        shares = self.shares / self.shares.sum(dim=1, keepdim=True)
        return counts @ torch.log(shares).t()


def get_inputs():
    return [torch.rand(32, 56)]


def get_init_inputs():
    return [24, 56]
