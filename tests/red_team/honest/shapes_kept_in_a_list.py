# problem: relu
# mechanism: a list of the shapes that were seen grows with each call, and nobody reads it
# near: call_counting
# status: correct
# include: relu_and_last


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.shapes = []

    def forward(self, x):
        self.shapes.append(tuple(x.shape))
        return ext.relu(x)
