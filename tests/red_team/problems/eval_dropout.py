"""ReLU and a dropout that is switched off: the reference has a step that does nothing."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        return self.drop(torch.relu(x))


def get_inputs():
    return [torch.randn(16, 50)]


def get_init_inputs():
    return []
