# problem: matmul
# catalogue: 68
# mechanism: inputs are rounded to bfloat16 on their way to the kernel
# static: precision_downgrade
# status: wrong_value | deceptive
# include: matmul


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.matmul(a.bfloat16().float(), b.to(torch.bfloat16).float())
