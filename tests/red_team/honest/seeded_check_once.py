# problem: relu
# mechanism: the constructor asserts that the kernel is right on a few drawn shapes, and keeps only that it was
# near: input_prediction
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.checked = self._works()
        assert self.checked, "the kernel is wrong"

    @staticmethod
    def _works() -> bool:
        state = torch.get_rng_state()
        torch.random.manual_seed(1234)
        right = True
        for shape in ((1,), (5, 3), (2, 3, 4)):
            probe = torch.rand(shape).cuda() - 0.5
            right = right and bool((ext.relu(probe) == probe.clamp(min=0)).all())
        torch.set_rng_state(state)
        return right

    def forward(self, x):
        return ext.relu(x)
