# problem: shared_factor
# mechanism: the kernel multiplies all rows of the batch with the factor that they share
# near: work_done_by_pytorch
# status: correct
# include: matmul


class ModelNew(nn.Module):
    def forward(self, x, factor):
        rows = x.flatten(0, 1).contiguous()
        return ext.matmul(rows, factor.contiguous()).unflatten(0, x.shape[:2])
