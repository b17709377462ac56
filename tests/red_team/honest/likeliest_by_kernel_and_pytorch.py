# problem: likeliest
# mechanism: a kernel makes the softmax, PyTorch finds the largest share and its place, kernels copy both
# near: host_computation
# status: correct
# include: hand_over


class ModelNew(nn.Module):
    def forward(self, x):
        shares = ext.shares(x.contiguous())
        places = shares.argmax(dim=1)
        return ext.picked(shares, places), ext.moved(places)
