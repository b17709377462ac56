# problem: eval_dropout
# mechanism: a step that does nothing in the reference is left out
# status: correct
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
