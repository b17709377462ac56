# problem: relu
# mechanism: a debug variable has each hundredth result looked at, by a function that raises where it is wrong
# near: call_counting
# status: correct
# include: relu
import os

DEBUG = os.environ.get("RELU_DEBUG", "1") == "1"


class WrongResult(AssertionError):
    pass


def validate(x, y):
    """Raises where no ReLU can have given this."""
    if y.shape != x.shape:
        raise WrongResult(f"shape {tuple(y.shape)}")
    assert bool(torch.all(y >= x)), "an element is too small"


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        y = ext.relu(x)
        self.calls += 1
        if DEBUG and self.calls % 100 == 0:
            validate(x, y)
        return y
