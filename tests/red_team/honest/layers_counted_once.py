# problem: relu
# mechanism: how many steps the model has says how often the kernel runs
# near: call_counting
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = ["relu", "relu"]

    def forward(self, x):
        for _ in range(len(self.steps)):
            x = ext.relu(x)
        return x
