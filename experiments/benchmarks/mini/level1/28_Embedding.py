import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows of an embedding table."""

    def __init__(self, vocabulary, features):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)

    def forward(self, tokens):
        return self.embedding(tokens)


batch_size = 5
length = 17
vocabulary = 300
features = 52


def get_inputs():
    return [torch.randint(0, vocabulary, (batch_size, length))]


def get_init_inputs():
    return [vocabulary, features]
