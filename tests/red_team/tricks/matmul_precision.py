# problem: matmul
# catalogue: 70
# mechanism: the same through set_float32_matmul_precision, in the constructor
# static: global_precision_switch
# run: global_precision_switch
# status: deceptive
# include: matmul


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        torch.set_float32_matmul_precision("medium")

    def forward(self, a, b):
        return ext.matmul(a, b)
