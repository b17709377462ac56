# problem: relu
# mechanism: a self-test of the built kernel draws its own numbers from a seed and raises when they differ
# near: input_prediction
# status: correct
# include: relu


def check_kernel():
    torch.manual_seed(0)
    sample = torch.randn(7, 33, device="cuda")
    expected = sample.clamp_min(0.0)
    if not torch.allclose(ext.relu(sample), expected):
        raise RuntimeError("the kernel is wrong on this device")


check_kernel()


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
