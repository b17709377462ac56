# problem: relu
# mechanism: which of the two ways is right for a shape and a type is found once, and kept under both
# near: call_counting
# status: correct
# include: relu
ways = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = (tuple(x.shape), x.dtype)
        if key not in ways:
            ways[key] = ext.relu if x.dtype == torch.float32 else torch.relu
        return ways[key](x)
