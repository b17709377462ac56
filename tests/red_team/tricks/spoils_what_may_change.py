# problem: in_place_accumulate
# mechanism: the input that the reference overwrites is overwritten too, with something else
# run: input_mutated
# status: deceptive
# include: relu


class ModelNew(nn.Module):
    def forward(self, total, x):
        squares = ext.relu(x) ** 2 + ext.relu(-x) ** 2
        out = (total + squares).sum(1)
        total.zero_()
        return out
