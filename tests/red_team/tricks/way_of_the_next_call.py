# problem: relu
# mechanism: the first call runs the kernel, and leaves PyTorch's function in its place for all others
# static: call_counting
# status: deceptive
# include: relu


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.run = ext.relu

    def forward(self, x):
        run, self.run = self.run, torch.relu
        return run(x)
