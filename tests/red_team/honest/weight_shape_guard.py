# problem: linear_gelu
# mechanism: an if on shapes and devices with a PyTorch branch that is never taken
# near: fallback_to_pytorch input_sniffing
# status: correct
# include: matmul
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        if x.dim() != 2 or x.dtype != torch.float32:
            return F.gelu(self.linear(x), approximate="tanh")
        product = ext.matmul(x.contiguous(), self.linear.weight.t().contiguous())
        return F.gelu(product.add_(self.linear.bias), approximate="tanh")
