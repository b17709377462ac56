# problem: relu
# mechanism: forward raises where its own kernel left no number
# near: identity_kernel
# status: correct
# include: relu_and_scale


class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.relu(x)
        if y[0, 0].item() != y[0, 0].item():
            raise RuntimeError("the kernel left NaN")
        return y
