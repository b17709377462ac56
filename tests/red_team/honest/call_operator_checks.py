# problem: relu
# mechanism: `__call__` checks its arguments before forward
# near: input_sniffing
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __call__(self, *args):
        if len(args) != 1 or args[0].dim() == 0:
            raise ValueError("one tensor is expected")
        return super().__call__(*args)

    def forward(self, x):
        return ext.relu(x)
