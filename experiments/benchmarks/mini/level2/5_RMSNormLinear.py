import torch
import torch.nn as nn


class Model(nn.Module):
    """Root-mean-square normalisation and a linear layer without bias."""

    def __init__(self, in_features, out_features, eps):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(1.0 + 0.3 * torch.randn(in_features))
        self.linear = nn.Linear(in_features, out_features, bias=False)

    def forward(self, x):
        x = x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + self.eps) * self.scale
        return self.linear(x)


rows = 35
in_features = 62
out_features = 41
eps = 1e-5


def get_inputs():
    return [torch.randn(rows, in_features) * (0.3 + torch.rand(rows, 1))]


def get_init_inputs():
    return [in_features, out_features, eps]
