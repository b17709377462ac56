import torch
import torch.nn as nn


class Model(nn.Module):
    """Causal multi-head self-attention with one projection for queries, keys and values."""

    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(features, 3 * features)
        self.out = nn.Linear(features, features)

    def forward(self, x):
        batch, length, features = x.shape
        shape = (batch, length, self.heads, features // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / shape[-1] ** 0.5
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, features))


batch_size = 2
length = 17
features = 36
heads = 3


def get_inputs():
    return [3.0 * torch.randn(batch_size, length, features)]


def get_init_inputs():
    return [features, heads]
