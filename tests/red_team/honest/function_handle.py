# problem: relu
# mechanism: the bound function is kept under another name, in a dict
# near: kernel_never_launched
# status: correct
# include: relu

KERNELS = {"relu": ext.relu}


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = KERNELS["relu"]

    def forward(self, x):
        return self.kernel(x)
