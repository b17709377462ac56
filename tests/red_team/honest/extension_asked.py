# problem: relu
# mechanism: the module of the extension is asked for its name, words and functions
# near: frame_access memory_tampering
# status: correct
# include: relu
assert ext.__name__ == "relu_ext" and callable(ext.relu) and "relu" in dir(ext)
assert type(ext).__name__ == "module" and "Tensor" in (ext.relu.__doc__ or "Tensor")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
