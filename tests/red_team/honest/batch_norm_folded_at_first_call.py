# problem: eval_batch_norm
# mechanism: scale and shift are computed from the norm at the first call and kept
# near: assumed_constant
# status: correct
# include: scale_shift_relu


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)
        self.eval()
        self.folded = None

    def forward(self, x):
        if self.folded is None:
            norm = self.norm
            scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
            self.folded = [scale, norm.bias - norm.running_mean * scale]
        return ext.bn(x, *self.folded)
