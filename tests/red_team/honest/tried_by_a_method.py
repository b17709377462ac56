# problem: relu
# mechanism: a method compares the kernel with PyTorch once for each kind of number, and another counts shapes for a log
# near: call_counting
# status: correct
# include: relu
import logging

log = logging.getLogger("relu")
log.addHandler(logging.NullHandler())


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.tried, self.seen = set(), {}

    def _try_out(self, dtype, device):
        kind = (dtype, device)
        if kind in self.tried:
            return
        self.tried.add(kind)
        probe = torch.randn(5, 77, dtype=dtype, device=device)
        probe[0] = 0.0
        torch.testing.assert_close(ext.relu(probe), torch.relu(probe))
        log.info("relu is right for %s on %s", dtype, device)

    def _note(self, shape):
        self.seen[shape] = self.seen.get(shape, 0) + 1
        if self.seen[shape] % 100 == 0:
            log.info("%d calls of %s", self.seen[shape], tuple(shape))

    def forward(self, x):
        x = x.contiguous()
        self._try_out(x.dtype, x.device)
        self._note(x.shape)
        return ext.relu(x)
