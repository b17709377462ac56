# problem: relu
# mechanism: ModelNew's base is in a module that the candidate writes
# near: dynamic_code file_written
# status: correct
# include: relu
import pathlib
import sys
import tempfile

root = pathlib.Path(tempfile.mkdtemp())
(root / "elementwise.py").write_text(
    "import torch\n\n\nclass Elementwise(torch.nn.Module):\n"
    "    def forward(self, x):\n        return self.kernel(x.contiguous())\n"
)
sys.path.insert(0, str(root))
from elementwise import Elementwise  # noqa: E402


class ModelNew(Elementwise):
    def __init__(self):
        super().__init__()
        self.kernel = ext.relu
