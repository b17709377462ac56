import torch
import torch.nn as nn


class Model(nn.Module):
    """Hinge on the cosine similarity of two rows."""

    def __init__(self, margin, scale):
        super().__init__()
        self.margin = margin
        self.scale = scale

    def forward(self, a, b):
        similarity = torch.nn.functional.cosine_similarity(a, b, dim=-1)
        return self.scale * torch.relu(self.margin - similarity)


rows = 110
features = 73
margin = 0.9
scale = 4.0


def get_inputs():
    a = torch.randn(rows, features)
    mix = 2.0 * torch.rand(rows, 1) - 1.0
    return [a, mix * a + torch.randn(rows, features)]


def get_init_inputs():
    return [margin, scale]
