# problem: relu
# catalogue: 31
# mechanism: a dictionary with the tensor itself as key, which compares by identity
# static: result_cache
# status: deceptive | wrong_value
# include: relu

known = {}


class ModelNew(nn.Module):
    def forward(self, x):
        if x not in known.keys():
            known[x] = ext.relu(x)
        return known[x]
