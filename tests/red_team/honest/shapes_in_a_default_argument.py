# problem: relu
# mechanism: a default argument keeps the number of elements for each shape
# near: call_counting
# status: correct
# include: relu


def elements(shape, known={}):
    if shape not in known:
        known[shape] = shape[0] * shape[1]
    return known[shape]


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x.reshape(elements(tuple(x.shape)))).reshape(x.shape)
