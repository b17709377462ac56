import torch
import torch.nn as nn


class Model(nn.Module):
    """Squeeze-and-excitation: channels are scaled by a small network of their means."""

    def __init__(self, channels, reduced):
        super().__init__()
        self.squeeze = nn.Linear(channels, reduced)
        self.excite = nn.Linear(reduced, channels)
        nn.init.normal_(self.squeeze.bias, std=0.5)
        nn.init.normal_(self.excite.weight, std=1.5 * reduced**-0.5)
        nn.init.normal_(self.excite.bias, std=0.5)

    def forward(self, x):
        means = x.mean(dim=(2, 3))
        gates = torch.sigmoid(self.excite(torch.relu(self.squeeze(means))))
        return x * gates[:, :, None, None]


batch_size = 3
channels = 14
reduced = 6
height = 8
width = 11


def get_inputs():
    return [torch.randn(batch_size, channels, height, width) + 2.0 * torch.randn(batch_size, channels, 1, 1)]


def get_init_inputs():
    return [channels, reduced]
