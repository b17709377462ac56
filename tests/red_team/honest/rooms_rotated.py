# problem: relu
# mechanism: a queue of shapes seen lately is turned by each call, and nothing follows it
# near: call_counting
# status: correct
# include: relu
from collections import deque


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.lately = deque([None] * 8)

    def forward(self, x):
        self.lately.rotate()
        self.lately[0] = tuple(x.shape)
        return ext.relu(x)
