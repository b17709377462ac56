# problem: relu
# mechanism: a helper raises for a type that the kernel does not have; forward catches that and hands the kernel a copy in fp32
# near: input_sniffing fallback_to_pytorch
# status: correct
# include: relu


def checked(t):
    if t.dtype != torch.float32 or not t.is_contiguous():
        raise TypeError("the kernel reads contiguous fp32")
    return t


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            given = checked(x)
        except TypeError:
            given = x.float().contiguous()
        return ext.relu(given)
