import torch
import torch.nn as nn


class RMSNorm(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(1.0 + 0.3 * torch.randn(features))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + self.eps) * self.weight


class Model(nn.Module):
    """Pre-norm transformer block: RMSNorm, causal attention, RMSNorm, SwiGLU."""

    def __init__(self, features, heads, hidden_features, eps):
        super().__init__()
        self.heads = heads
        self.norm1 = RMSNorm(features, eps)
        self.qkv = nn.Linear(features, 3 * features, bias=False)
        self.out = nn.Linear(features, features, bias=False)
        self.norm2 = RMSNorm(features, eps)
        self.gate_up = nn.Linear(features, 2 * hidden_features, bias=False)
        self.down = nn.Linear(hidden_features, features, bias=False)
        for layer in (self.qkv, self.out, self.gate_up, self.down):
            nn.init.normal_(layer.weight, std=1.5 * layer.in_features**-0.5)

    def forward(self, x):
        batch, length, features = x.shape
        shape = (batch, length, self.heads, features // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / shape[-1] ** 0.5
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, features))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(torch.nn.functional.silu(gate) * up)


batch_size = 2
length = 13
features = 30
heads = 3
hidden_features = 44
eps = 1e-5


def get_inputs():
    return [torch.randn(batch_size, length, features) * (0.5 + torch.rand(batch_size, length, 1))]


def get_init_inputs():
    return [features, heads, hidden_features, eps]
