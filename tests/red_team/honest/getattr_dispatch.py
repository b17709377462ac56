# problem: relu
# mechanism: getattr with a name from a table of this file
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __init__(self, name="relu"):
        super().__init__()
        self.function = getattr(ext, name)

    def forward(self, x):
        return self.function(x)
