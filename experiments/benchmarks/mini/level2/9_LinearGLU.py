import torch
import torch.nn as nn


class Model(nn.Module):
    """Gated linear unit."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, 2 * out_features)
        nn.init.normal_(self.linear.bias, std=0.5)

    def forward(self, x):
        return torch.nn.functional.glu(self.linear(x), dim=-1)


rows = 37
in_features = 50
out_features = 33


def get_inputs():
    return [2.0 * torch.randn(rows, in_features)]


def get_init_inputs():
    return [in_features, out_features]
