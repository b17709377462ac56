# problem: relu
# mechanism: a list of the last lines for a log is made anew by each call
# near: call_counting
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.lines = []

    def forward(self, x):
        self.lines = [*self.lines[-7:], f"{tuple(x.shape)}"]
        return ext.relu(x)
