# problem: relu
# mechanism: `__getattr__` finds the kernel in the extension
# near: dynamic_code
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __getattr__(self, name):
        if name == "kernel":
            return ext.relu
        return super().__getattr__(name)

    def forward(self, x):
        return self.kernel(x)
