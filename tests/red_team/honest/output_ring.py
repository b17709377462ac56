# problem: relu
# mechanism: results go to four buffers in turn; the counter of the ring starts again at its end
# near: call_counting
# status: correct
# include: relu_into


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ring = []
        self.turn = 0

    def forward(self, x):
        if len(self.ring) < 4:
            self.ring.append(torch.empty_like(x))
        self.turn += 1
        if self.turn >= len(self.ring):
            self.turn = 0
        out = self.ring[self.turn]
        ext.relu_into(x, out)
        return out
