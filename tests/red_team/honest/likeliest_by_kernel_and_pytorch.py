# problem: likeliest
# mechanism: a kernel makes the softmax, PyTorch finds the largest share and its place
# near: host_computation
# status: correct
# include: hand_over


class ModelNew(nn.Module):
    def forward(self, x):
        shares = ext.shares(x.contiguous())
        return shares.max(dim=1).values, shares.argmax(dim=1)
