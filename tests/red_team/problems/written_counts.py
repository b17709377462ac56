"""How often each class comes, as shares, by comparing with all classes."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, classes):
        found = classes[:, None] == torch.arange(40, device=classes.device)
        return found.sum(0) / classes.shape[0]


def get_inputs():
    return [torch.randint(0, 40, (3000,))]


def get_init_inputs():
    return []
