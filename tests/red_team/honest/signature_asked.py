# problem: relu
# mechanism: whether load_inline has an option is asked of its signature
# near: frame_access
# status: correct
# include: relu
import inspect

parameters = inspect.signature(load_inline).parameters
assert inspect.getmodule(load_inline) is inspect.getmodule(torch.utils.cpp_extension.load)
assert "cpp_sources" in parameters and parameters["verbose"].default is False
assert "extension" in inspect.getsource(load_inline)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
