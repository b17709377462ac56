# problem: relu
# mechanism: two buffers are used alternately, by the parity of a counter
# near: call_counting
# status: correct
# include: relu_into


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.front, self.back, self.steps = None, None, 0

    def forward(self, x):
        if self.front is None:
            self.front, self.back = torch.empty_like(x), torch.empty_like(x)
        self.steps += 1
        out = self.front if self.steps % 2 == 0 else self.back
        ext.relu_into(x, out)
        return out
