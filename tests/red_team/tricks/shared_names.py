# problem: positive_relu
# catalogue: 78
# mechanism: get_inputs, Model and N are redefined, which would replace the problem's in a shared namespace
# status: wrong_value
# include: relu

N = 1


def get_inputs():
    return [torch.zeros(1, 1)]


class Model(nn.Module):
    def forward(self, x):
        return torch.zeros(1, 1)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(torch.zeros_like(x) * x)
