import torch
import torch.nn as nn


class Model(nn.Module):
    """Gated diagonal state-space layer: a linear recurrence over time between two projections."""

    def __init__(self, features, states):
        super().__init__()
        self.project = nn.Linear(features, 2 * states)
        self.out = nn.Linear(states, features)
        self.decay = nn.Parameter(torch.randn(states))
        self.skip = nn.Parameter(torch.randn(states))
        nn.init.normal_(self.project.weight, std=features**-0.5)
        nn.init.normal_(self.out.weight, std=states**-0.5)

    def forward(self, x):
        signal, gate = self.project(x).chunk(2, dim=-1)
        keep = torch.sigmoid(self.decay)
        state = torch.zeros_like(signal[:, 0])
        states = []
        for step in range(x.shape[1]):
            state = keep * state + signal[:, step]
            states.append(state)
        y = torch.stack(states, dim=1) + self.skip * signal
        return self.out(y * torch.nn.functional.silu(gate))


batch_size = 3
length = 16
features = 24
states = 35


def get_inputs():
    return [torch.randn(batch_size, length, features)]


def get_init_inputs():
    return [features, states]
