# problem: relu
# mechanism: contiguous(), detach() and a shape check before the kernel
# near: uninitialised_output
# status: correct
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        if x.dim() != 2 or x.numel() == 0:
            raise ValueError("a non-empty matrix is expected")
        x = x.detach().contiguous()
        return ext.relu(x).view_as(x)
