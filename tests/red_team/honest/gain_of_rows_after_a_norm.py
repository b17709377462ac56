# problem: modulated_norm
# mechanism: PyTorch normalises in one operator without weights, a kernel does gain and shift
# near: work_done_by_pytorch
# status: correct
# include: multiply_add

import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, x, gain, shift):
        return ext.multiply_add(F.layer_norm(x, x.shape[-1:], eps=1e-6), gain, shift)
