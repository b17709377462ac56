"""Cross entropy of each row, step by step."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, scores, classes):
        shifted = scores - scores.amax(1, keepdim=True)
        logs = shifted - shifted.exp().sum(1, keepdim=True).log()
        return -logs.gather(1, classes[:, None]).squeeze(1)


def get_inputs():
    return [torch.randn(96, 40), torch.randint(0, 40, (96,))]


def get_init_inputs():
    return []
