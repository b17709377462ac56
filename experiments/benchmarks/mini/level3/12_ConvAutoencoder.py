import torch
import torch.nn as nn


class Model(nn.Module):
    """Small convolutional autoencoder: halves the image and restores it."""

    def __init__(self, in_channels, hidden_channels):
        super().__init__()
        self.encoder = nn.Conv2d(in_channels, hidden_channels, 3, stride=2, padding=1)
        self.decoder = nn.ConvTranspose2d(hidden_channels, in_channels, 4, stride=2, padding=1)
        nn.init.normal_(self.encoder.bias, std=0.3)
        nn.init.normal_(self.decoder.weight, std=(4 * hidden_channels) ** -0.5)
        nn.init.normal_(self.decoder.bias, std=0.5)

    def forward(self, x):
        return torch.sigmoid(self.decoder(torch.relu(self.encoder(x))))


batch_size = 2
in_channels = 3
hidden_channels = 10
height = 14
width = 18


def get_inputs():
    return [3.0 * torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, hidden_channels]
