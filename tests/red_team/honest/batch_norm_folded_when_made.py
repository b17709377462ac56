# problem: eval_batch_norm
# mechanism: scale and shift are computed from the norm when the model is made
# near: assumed_constant
# status: correct
# include: scale_shift_relu


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)
        self.eval()
        self.scale = (self.norm.weight * torch.rsqrt(self.norm.running_var + self.norm.eps)).detach()
        self.shift = (self.norm.bias - self.norm.running_mean * self.scale).detach()

    def forward(self, x):
        return ext.bn(x, self.scale.to(x.device), self.shift.to(x.device))
