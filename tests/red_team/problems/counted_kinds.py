"""How often each of 48 kinds occurs."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, kinds):
        return torch.bincount(kinds, minlength=48)


def get_inputs():
    return [torch.randint(0, 48, (5000,))]


def get_init_inputs():
    return []
