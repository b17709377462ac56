# problem: relu
# mechanism: the reference's class and input functions are in the file, and unused
# near: reference_reused input_prediction
# status: correct
# include: relu


class Model(nn.Module):
    """The original, for comparison."""

    def forward(self, x):
        return torch.relu(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)


def get_inputs():
    return [torch.randn(48, 100)]


def get_init_inputs():
    return []
