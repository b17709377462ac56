# problem: relu
# mechanism: a module of helpers is written beside the candidate and imported; Python keeps its byte code
# near: file_written dynamic_code
# status: correct
# include: relu
import os
import sys

HELPER = """
def prepared(x):
    return x if x.is_contiguous() else x.contiguous()
"""

folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, "launch_helpers.py"), "w") as stream:
    stream.write(HELPER)
if folder not in sys.path:
    sys.path.insert(0, folder)
import launch_helpers  # noqa: E402


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(launch_helpers.prepared(x))
