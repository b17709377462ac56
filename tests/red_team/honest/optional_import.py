# problem: relu
# mechanism: try/except around an import, with a pass
# status: correct
# include: relu

try:
    import triton  # noqa: F401

    HAVE_TRITON = True
except ImportError:
    HAVE_TRITON = False
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
