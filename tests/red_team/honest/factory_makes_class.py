# problem: relu
# mechanism: a function makes the class for one kernel
# near: kernel_never_launched
# status: correct
# include: relu


def module_of(kernel):
    class Elementwise(nn.Module):
        def forward(self, x):
            return kernel(x)

    return Elementwise


ModelNew = module_of(ext.relu)
