import torch
import torch.nn as nn


def rotate(x, cosine, sine):
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class Model(nn.Module):
    """Rotary position embedding of queries and keys."""

    def __init__(self, length, features, base):
        super().__init__()
        angle = torch.arange(length)[:, None] / base ** (torch.arange(0, features, 2) / features)
        self.register_buffer("cosine", angle.cos().repeat(1, 2))
        self.register_buffer("sine", angle.sin().repeat(1, 2))

    def forward(self, queries, keys):
        return rotate(queries, self.cosine, self.sine), rotate(keys, self.cosine, self.sine)


batch_size = 2
heads = 3
key_heads = 1
length = 27
features = 20
base = 500.0


def get_inputs():
    return [torch.randn(batch_size, heads, length, features), torch.randn(batch_size, key_heads, length, features)]


def get_init_inputs():
    return [length, features, base]
