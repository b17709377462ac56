# problem: relu
# mechanism: a function that nothing calls compares the kernel with one of PyTorch's jiterator
# near: compiled_by_pytorch
# status: correct
# include: relu


def difference(x):
    other = torch.cuda.jiterator._create_jit_fn("template <typename T> T positive(T x) { return x > T(0) ? x : T(0); }")
    return (ext.relu(x) - other(x)).abs().max().item()


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
