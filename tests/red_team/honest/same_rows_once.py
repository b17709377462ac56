# problem: relu
# mechanism: rows that repeat within one call are computed all the same, and compared
# near: result_cache kernel_never_launched
# status: correct
# include: relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = ext.relu(x)
        torch._assert(out.shape == x.shape, "as many rows as before")
        return out
