# problem: relu
# mechanism: the plainest form
# status: correct
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
