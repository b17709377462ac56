# problem: relu
# mechanism: getattr with a name from a table of this file
# near: kernel_never_launched dynamic_code
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __init__(self, name="relu"):
        super().__init__()
        self.function = getattr(ext, name)

    def forward(self, x):
        return self.function(x)
