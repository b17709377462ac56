# problem: sloped_product
# mechanism: the slope of a PReLU is learned by its logarithm, so it does not begin as a quarter
# near: assumed_constant
# status: correct
# include: sloped


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 24)
        self.log_slope = nn.Parameter(torch.full((1,), 0.25).log())

    def forward(self, x):
        return ext.sloped(x, self.linear.weight, self.linear.bias, self.log_slope.exp(), 0.0)
