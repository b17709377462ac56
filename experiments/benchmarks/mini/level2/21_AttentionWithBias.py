import torch
import torch.nn as nn


class Model(nn.Module):
    """Scaled dot-product attention with an additive bias."""

    def forward(self, queries, keys, values, bias):
        scores = queries @ keys.transpose(-2, -1) / queries.shape[-1] ** 0.5 + bias
        return torch.softmax(scores, dim=-1) @ values


batch_size = 2
heads = 3
queries = 14
keys = 19
features = 12


def get_inputs():
    return [
        torch.randn(batch_size, heads, queries, features),
        2.0 * torch.randn(batch_size, heads, keys, features),
        2.0 * torch.randn(batch_size, heads, keys, features),
        torch.randn(heads, queries, keys),
    ]


def get_init_inputs():
    return []
