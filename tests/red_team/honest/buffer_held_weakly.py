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
        self.seen = weakref.ref(self.ones)

    def forward(self, x):
        assert self.seen() is not None
        return ext.relu(x)
