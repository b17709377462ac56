"""A student beside its teacher, which begins as a copy."""

import copy

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.student = nn.Linear(width, classes)
        self.teacher = copy.deepcopy(self.student)

    def forward(self, x):
        return self.student(x) * torch.tanh(self.teacher(x))


def get_inputs():
    return [torch.randn(40, 64)]


def get_init_inputs():
    return [64, 32]
