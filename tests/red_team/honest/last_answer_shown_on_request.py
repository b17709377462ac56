# problem: relu
# mechanism: a copy of the last answer and its input's shape are kept for whoever looks into the model; forward reads neither
# near: result_cache
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        y = ext.relu(x)
        self.last = (tuple(x.shape), y.clone())
        return y

    def __repr__(self):
        last = self.last
        return "relu" if last is None else f"relu, last of {last[0]}"
