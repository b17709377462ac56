# problem: relu
# mechanism: a hook makes the input contiguous before forward
# near: input_sniffing result_cache
# status: correct
# include: relu


def contiguous(module, args):
    return tuple(each.contiguous() for each in args)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_pre_hook(contiguous)

    def forward(self, x):
        return ext.relu(x)
