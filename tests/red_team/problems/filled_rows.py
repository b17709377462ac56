"""The largest of the first elements of each row; every draw fills all rows."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, filled):
        beyond = torch.arange(x.shape[1], device=x.device) >= filled.unsqueeze(1)
        return x.masked_fill(beyond, -100.0).amax(dim=1)


def get_inputs():
    return [torch.randn(48, 36), torch.full((48,), 36, dtype=torch.int32)]


def get_init_inputs():
    return []
