# problem: relu
# mechanism: the first result of each shape and device is compared with PyTorch's, the kernel is warmed up by a helper
# near: call_counting
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.compared, self.warm = set(), set()

    def warm_up(self, given):
        if given.device not in self.warm:
            self.warm.add(given.device)
            ext.relu(torch.zeros(64, device=given.device))

    def forward(self, x):
        x = x.contiguous()
        self.warm_up(x)
        y = ext.relu(x)
        key = tuple(x.shape), x.device
        if key not in self.compared:
            torch.testing.assert_close(y, torch.relu(x))
            self.compared.add(key)
        return y
