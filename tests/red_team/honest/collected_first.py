# problem: relu
# mechanism: garbage is collected once the model is made, and the collector left on
# near: gc_access
# status: correct
# include: relu
import gc


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        gc.collect()
        assert gc.isenabled() and gc.get_threshold()[0] > 0

    def forward(self, x):
        return ext.relu(x)
