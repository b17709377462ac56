# problem: relu
# mechanism: the constructor puts the names of its steps in order, each of which is a kernel
# near: environment_sniffing
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = [getattr(ext, name) for name in sorted({"relu"}, key=str)]

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x
