# problem: relu
# mechanism: the first of several array libraries that is there is imported by name, for a table of sizes
# near: dynamic_code
# warns: dynamic_code
# status: correct
# include: relu
import importlib
import importlib.util
import os


def array_library():
    for name in os.environ.get("ARRAY_LIBRARIES", "cupy,numpy").split(","):
        if importlib.util.find_spec(name) is not None:
            return importlib.import_module(name)
    return importlib.import_module(".".join(["torch", "nn"]))


arrays = array_library()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = arrays.__name__

    def forward(self, x):
        return ext.relu(x)
