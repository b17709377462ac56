# problem: relu
# mechanism: a decorator keeps the class in a registry, from which ModelNew is taken
# near: kernel_never_launched
# status: correct
# include: relu

REGISTRY = {}


def registered(kind):
    REGISTRY[kind.__name__.lower()] = kind
    return kind


@registered
class Rectifier(nn.Module):
    def forward(self, x):
        return ext.relu(x)


ModelNew = REGISTRY["rectifier"]
