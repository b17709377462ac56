import torch
import torch.nn as nn


class Model(nn.Module):
    """Root-mean-square normalisation, SwiGLU feed-forward layer, residual connection."""

    def __init__(self, features, hidden_features, eps):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(1.0 + 0.3 * torch.randn(features))
        self.gate = nn.Linear(features, hidden_features, bias=False)
        self.up = nn.Linear(features, hidden_features, bias=False)
        self.down = nn.Linear(hidden_features, features, bias=False)
        for layer in (self.gate, self.up, self.down):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)

    def forward(self, x):
        normed = x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + self.eps) * self.scale
        return x + self.down(torch.nn.functional.silu(self.gate(normed)) * self.up(normed))


batch_size = 3
length = 7
features = 34
hidden_features = 53
eps = 1e-5


def get_inputs():
    return [torch.randn(batch_size, length, features) * (0.3 + torch.rand(batch_size, length, 1))]


def get_init_inputs():
    return [features, hidden_features, eps]
