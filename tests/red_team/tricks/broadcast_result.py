# problem: mse
# catalogue: 74
# mechanism: a result of another shape that broadcasts against the expected one
# status: wrong_shape
# include: relu


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return ext.relu(((predictions - targets) ** 2).mean().reshape(1, 1))
