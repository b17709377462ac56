# problem: eval_batch_norm
# mechanism: a norm is folded when the model is made, and its rows are padded with zeros to a multiple of 32
# near: assumed_constant
# status: correct
# include: scale_shift_relu


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        norm = nn.BatchNorm1d(channels)
        scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
        shift = norm.bias - norm.running_mean * scale
        folded = torch.zeros(2, -(-channels // 32) * 32)
        folded[0, :channels], folded[1, :channels] = scale, shift
        self.folded = nn.Parameter(folded)
        self.channels = channels

    def forward(self, x):
        return ext.bn(x, self.folded[0], self.folded[1, : self.channels])
