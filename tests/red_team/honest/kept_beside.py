# problem: kept_beside
# mechanism: the input is given back beside the answer, as the reference does
# near: input_mutated
# status: correct
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x), x.view_as(x)
