# problem: relu
# mechanism: a buffer is watched by a weak reference, to see that nobody has replaced it
# near: gc_access result_cache
# status: correct
# include: relu
import weakref


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ones", torch.ones(1), persistent=False)
        self.seen = None

    def forward(self, x):
        if self.seen is None:  # not before: a move to the device replaces the buffer
            self.seen = weakref.ref(self.ones)
        assert self.seen() is not None
        return ext.relu(x)
