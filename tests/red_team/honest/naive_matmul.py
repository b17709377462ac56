# problem: matmul
# mechanism: one thread an element
# status: correct
# include: matmul


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.matmul(a.contiguous(), b.contiguous())
