# problem: relu
# mechanism: a hook keeps the shape of the last result, for a summary that nobody asks for
# near: result_cache
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.last_shape = None
        self.register_forward_hook(self._note)

    def _note(self, module, args, out):
        self.last_shape = tuple(out.shape)

    def forward(self, x):
        return ext.relu(x)
