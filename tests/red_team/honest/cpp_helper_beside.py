# problem: relu
# mechanism: a helper of C++ alone says the shape, the kernel of another extension does the work
# include: relu

helper = load_inline(
    name="rows_ext",
    cpp_sources="#include <torch/extension.h>\nlong rows(torch::Tensor x) { return x.numel() / x.size(-1); }\n",
    functions=["rows"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        if helper.rows(x) == 0:
            return x.clone()
        return ext.relu(x)
