# problem: relu
# mechanism: the kernel is called through torch.autograd.Function
# near: kernel_never_launched
# status: correct
# include: relu


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = ext.relu(x)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return grad * (out > 0)


class ModelNew(nn.Module):
    def forward(self, x):
        return Relu.apply(x)
