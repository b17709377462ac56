import torch
import torch.nn as nn


class Model(nn.Module):
    """Multi-layer perceptron with two hidden layers."""

    def __init__(self, in_features, hidden_features, out_features):
        super().__init__()
        self.first = nn.Linear(in_features, hidden_features)
        self.second = nn.Linear(hidden_features, hidden_features)
        self.third = nn.Linear(hidden_features, out_features)
        for layer in (self.first, self.second, self.third):
            nn.init.normal_(layer.bias, std=0.5)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = torch.relu(self.second(x))
        return self.third(x)


batch_size = 21
in_features = 37
hidden_features = 50
out_features = 19


def get_inputs():
    return [4.0 * torch.randn(batch_size, in_features)]


def get_init_inputs():
    return [in_features, hidden_features, out_features]
