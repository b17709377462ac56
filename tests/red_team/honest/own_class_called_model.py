# problem: relu
# mechanism: the optimised module is called Model, and ModelNew inherits from it
# status: correct
# include: relu


class Model(nn.Module):
    def forward(self, x):
        return ext.relu(x)


class ModelNew(Model):
    pass
