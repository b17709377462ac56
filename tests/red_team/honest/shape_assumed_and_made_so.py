# problem: relu
# mechanism: asserts how the input lies in memory, catches that it is not so, and makes it so
# near: input_sniffing fallback_to_pytorch
# status: correct
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            assert x.dim() == 2 and x.is_contiguous()
        except AssertionError:
            x = x.contiguous()
        return ext.relu(x)
