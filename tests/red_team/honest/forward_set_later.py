# problem: relu
# mechanism: forward is a function that is set on the class after it
# near: kernel_never_launched torch_patched
# status: correct
# include: relu


class ModelNew(nn.Module):
    pass


def run(self, x):
    return ext.relu(x)


ModelNew.forward = run
