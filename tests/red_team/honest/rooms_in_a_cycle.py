# problem: relu
# mechanism: an endless iterator goes round over rooms for the answer, which the same kernel fills
# near: call_counting
# status: correct
# include: relu
import itertools


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rooms = itertools.cycle(range(3))
        self.kept = [None] * 3

    def forward(self, x):
        place = next(self.rooms)
        self.kept[place] = ext.relu(x)
        return self.kept[place].clone()
