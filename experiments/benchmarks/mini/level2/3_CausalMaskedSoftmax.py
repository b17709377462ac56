import torch
import torch.nn as nn


class Model(nn.Module):
    """Scale, causal mask and softmax of attention scores."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, scores):
        length = scores.shape[-1]
        future = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
        return torch.softmax((scores * self.scale).masked_fill(future, float("-inf")), dim=-1)


batch_size = 3
heads = 4
length = 22
scale = 0.35


def get_inputs():
    return [3.0 * torch.randn(batch_size, heads, length, length)]


def get_init_inputs():
    return [scale]
