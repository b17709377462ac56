# problem: relu
# mechanism: the class is made by type() from two functions
# near: kernel_never_launched dynamic_code
# status: correct
# include: relu


def _init(self):
    nn.Module.__init__(self)
    self.kernel = ext.relu


def _forward(self, x):
    return self.kernel(x)


ModelNew = type("ModelNew", (nn.Module,), {"__init__": _init, "forward": _forward})
