"""Running sums of logarithms, step by step."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        total = torch.full_like(x[:, 0], -1e4)
        seen = []
        for t in range(x.shape[1]):
            top = torch.maximum(total, x[:, t])
            total = top + torch.log(torch.exp(total - top) + torch.exp(x[:, t] - top))
            seen.append(total)
        return torch.stack(seen, 1)


def get_inputs():
    return [torch.randn(24, 60)]


def get_init_inputs():
    return []
