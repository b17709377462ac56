# problem: linear_gelu
# mechanism: the weight is transposed once and kept until it changes, with PyTorch's version counter
# near: result_cache stale_output
# status: correct
# include: matmul
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self._transposed = None
        self._version = -1

    def forward(self, x):
        if self._transposed is None or self._version != self.linear.weight._version:
            self._transposed = self.linear.weight.detach().t().contiguous()
            self._version = self.linear.weight._version
        return F.gelu(ext.matmul(x, self._transposed) + self.linear.bias, approximate="tanh")
