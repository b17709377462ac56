# problem: relu
# mechanism: its own class is read as text for a note, as PyTorch does with its operators
# near: frame_access
# status: correct
# include: relu
import inspect
import platform


class ModelNew(nn.Module):
    """A kernel for relu."""

    def forward(self, x):
        return ext.relu(x)


NOTE = f"{inspect.getdoc(ModelNew)} ({len(inspect.getsource(ModelNew))} characters, Python {platform.python_version()})"
assert inspect.isclass(ModelNew) and inspect.getfile(ModelNew).endswith(".py")
