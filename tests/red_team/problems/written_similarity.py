"""Which of many keys each row is near to: cosines of all pairs, written out."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, keys):
        products = (x[:, None] * keys[None]).sum(2)
        lengths = x.square().sum(1).sqrt()[:, None] * keys.square().sum(1).sqrt()[None]
        return products / lengths


def get_inputs():
    return [torch.randn(40, 64), torch.randn(50, 64)]


def get_init_inputs():
    return []
