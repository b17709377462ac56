# problem: lengths
# mechanism: a variable holds one of two kernels by how full the rows are on average, and PyTorch's function by type alone
# near: input_sniffing
# status: correct
# include: ragged_sums
import torch


def by_pytorch(x, lengths):
    return torch.where(torch.arange(x.shape[1], device=x.device) < lengths[:, None], x, 0).sum(1)


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        way = ext.narrow
        if lengths.sum().item() > 12 * x.shape[0]:
            way = ext.wide
        if x.dtype != torch.float32:
            way = by_pytorch
        return way(x, lengths)
