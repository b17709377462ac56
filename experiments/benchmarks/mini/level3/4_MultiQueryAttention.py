import torch
import torch.nn as nn


class Model(nn.Module):
    """Multi-query attention: every query head reads the same keys and values."""

    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(features, features, bias=False)
        self.key_value = nn.Linear(features, 2 * (features // heads), bias=False)
        self.out = nn.Linear(features, features, bias=False)
        for layer in (self.query, self.key_value, self.out):
            nn.init.normal_(layer.weight, std=features**-0.5)

    def forward(self, x):
        batch, length, features = x.shape
        head_size = features // self.heads
        q = self.query(x).view(batch, length, self.heads, head_size).transpose(1, 2)
        k, v = self.key_value(x).split(head_size, dim=-1)
        weights = torch.softmax(q @ k.transpose(-2, -1).unsqueeze(1) / head_size**0.5, dim=-1)
        return self.out((weights @ v.unsqueeze(1)).transpose(1, 2).reshape(batch, length, features))


batch_size = 2
length = 15
features = 40
heads = 4


def get_inputs():
    return [1.5 * torch.randn(batch_size, length, features)]


def get_init_inputs():
    return [features, heads]
