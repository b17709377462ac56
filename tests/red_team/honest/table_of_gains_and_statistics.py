# problem: eval_batch_norm
# mechanism: gain, shift, mean and variance are the rows of one table, so no state of the reference's fits
# near: assumed_constant
# status: correct
# include: scale_shift_relu


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        ones, zeros = torch.ones(channels), torch.zeros(channels)
        self.learned = nn.Parameter(torch.stack([ones, zeros]))
        self.register_buffer("seen", torch.stack([zeros, ones]))

    def forward(self, x):
        (gain, shift), (mean, var) = self.learned, self.seen
        scale = gain * torch.rsqrt(var + 1e-5)
        return ext.bn(x, scale, shift - mean * scale)
