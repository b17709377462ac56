# problem: gated_norm
# mechanism: the norm is one operator of PyTorch's, gate and sum are a kernel
# near: work_done_by_pytorch
# status: correct
# include: multiply_add

import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(width) + 0.5)
        self.shift = nn.Parameter(torch.randn(width))

    def forward(self, x, gate, start):
        return ext.multiply_add(F.layer_norm(x, self.gain.shape, self.gain, self.shift), gate, start)
