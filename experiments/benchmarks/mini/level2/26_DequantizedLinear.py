import torch
import torch.nn as nn


class Model(nn.Module):
    """Linear layer whose weight is stored in eight bits with a scale for each output."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (out_features, in_features), dtype=torch.int8))
        self.register_buffer("scale", (0.5 + torch.rand(out_features)) / (64.0 * in_features**0.5))
        self.bias = nn.Parameter(0.5 * torch.randn(out_features))

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight.float() * self.scale[:, None], self.bias)


rows = 21
in_features = 75
out_features = 58


def get_inputs():
    return [torch.randn(rows, in_features)]


def get_init_inputs():
    return [in_features, out_features]
