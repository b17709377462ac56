# problem: relu
# mechanism: the first call tries two ways, the others take the one that was faster
# near: watched_call
# status: correct
# include: relu_each
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.way = None

    def forward(self, x):
        if self.way is None:
            first, second = ext.relu_each(x, 1), ext.relu(x)
            self.way = ext.relu if torch.equal(first, second) else ext.relu_each
            return second
        return self.way(x)
