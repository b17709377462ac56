# problem: relu
# catalogue: 75
# mechanism: NaN everywhere, for checkers that treat NaN as a wildcard
# status: wrong_value
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x) * float("nan")
