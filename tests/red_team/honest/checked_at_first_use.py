# problem: relu
# mechanism: at its first use on a device the kernel is compared with PyTorch on drawn numbers, for an error
# near: call_counting
# status: correct
# include: relu

_right_on = set()


def _must_be_right(device):
    if device in _right_on:
        return
    probe = torch.linspace(-3, 3, 301, device=device)
    if not torch.equal(ext.relu(probe), probe.clamp(min=0)):
        raise RuntimeError(f"the kernel is wrong on {device}")
    _right_on.add(device)


class ModelNew(nn.Module):
    def forward(self, x):
        _must_be_right(x.device)
        return ext.relu(x)
