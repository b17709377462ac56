# problem: relu
# mechanism: a table of workspaces by shape notes when each was used last, and gives up the oldest of more than eight
# near: call_counting result_cache
# status: correct
# include: relu_and_last
import itertools

clock = itertools.count()


class Rooms:
    def __init__(self):
        self.used = {}

    def note(self, shape):
        self.used[shape] = next(clock)
        if len(self.used) > 8:
            del self.used[min(self.used, key=self.used.get)]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rooms = Rooms()

    def forward(self, x):
        self.rooms.note(tuple(x.shape))
        return ext.relu(x)
