# problem: matmul
# mechanism: Python splits one factor into three bfloat16 terms, and three launches add up their products
# near: precision_downgrade
# warns: precision_downgrade
# status: correct
# include: matmul


def terms(value):
    for _ in range(3):
        part = value.to(torch.bfloat16)
        yield part
        value = value - part.float()


class ModelNew(nn.Module):
    def forward(self, a, b):
        parts = [ext.matmul(part.float(), b) for part in terms(a)]
        return parts[2] + parts[1] + parts[0]
