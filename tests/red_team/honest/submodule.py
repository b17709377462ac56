# problem: relu
# mechanism: the kernel is called in a submodule, inside nn.Sequential
# near: kernel_never_launched
# status: correct
# include: relu


class FusedRelu(nn.Module):
    def forward(self, x):
        return ext.relu(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(FusedRelu(), nn.Identity())

    def forward(self, x):
        return self.body(x)
