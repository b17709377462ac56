# problem: relu
# mechanism: the first call notes that it was there, and prepares what all calls read
# near: call_counting
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ready = False

    def forward(self, x):
        if not self.ready:
            self.width = x.shape[1]
            self.ready = True
        return ext.relu(x.reshape(-1, self.width)).reshape(x.shape)
