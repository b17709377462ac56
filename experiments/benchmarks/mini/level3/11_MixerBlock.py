import torch
import torch.nn as nn


class Model(nn.Module):
    """MLP-Mixer block: one network across the patches, one across the channels."""

    def __init__(self, patches, channels, token_hidden, channel_hidden):
        super().__init__()
        self.norm1 = nn.LayerNorm(channels)
        self.token_in = nn.Linear(patches, token_hidden)
        self.token_out = nn.Linear(token_hidden, patches)
        self.norm2 = nn.LayerNorm(channels)
        self.channel_in = nn.Linear(channels, channel_hidden)
        self.channel_out = nn.Linear(channel_hidden, channels)
        for norm in (self.norm1, self.norm2):
            nn.init.normal_(norm.weight, mean=1.0, std=0.3)
            nn.init.normal_(norm.bias, std=0.3)
        for layer in (self.token_in, self.token_out, self.channel_in, self.channel_out):
            nn.init.normal_(layer.weight, std=1.5 * layer.in_features**-0.5)
            nn.init.normal_(layer.bias, std=0.3)

    def forward(self, x):
        y = self.norm1(x).transpose(1, 2)
        x = x + self.token_out(torch.nn.functional.gelu(self.token_in(y))).transpose(1, 2)
        return x + self.channel_out(torch.nn.functional.gelu(self.channel_in(self.norm2(x))))


batch_size = 2
patches = 15
channels = 22
token_hidden = 18
channel_hidden = 37


def get_inputs():
    return [torch.randn(batch_size, patches, channels) + torch.randn(batch_size, patches, 1)]


def get_init_inputs():
    return [patches, channels, token_hidden, channel_hidden]
