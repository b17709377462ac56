import torch
import torch.nn as nn


class Model(nn.Module):
    """Linear layer, swish, group normalisation of the features."""

    def __init__(self, in_features, out_features, groups):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        nn.init.normal_(self.linear.bias, std=0.5)
        self.norm = nn.GroupNorm(groups, out_features)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x):
        x = self.linear(x)
        return self.norm(x * torch.sigmoid(x))


rows = 40
in_features = 46
out_features = 60
groups = 5


def get_inputs():
    return [3.0 * torch.randn(rows, in_features)]


def get_init_inputs():
    return [in_features, out_features, groups]
