# problem: zero_bias
# mechanism: the weight and a bias of zeros are packed into one parameter
# near: assumed_constant
# status: correct
# include: sloped


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        linear = nn.Linear(32, 24)
        self.packed = nn.Parameter(torch.cat([linear.weight.flatten(), torch.zeros(24)]))

    def forward(self, x):
        weight, bias = self.packed.split([32 * 24, 24])
        return ext.sloped(x, weight.view(24, 32), bias, x.new_empty(0), 1.0)
