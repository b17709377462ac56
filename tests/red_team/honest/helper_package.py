# problem: relu
# mechanism: a package in a temporary folder, imported by name, and a rare module of the standard library
# near: file_written dynamic_code
# status: correct
# include: relu
import colorsys
import importlib
import pathlib
import sys
import tempfile
import wave

root = pathlib.Path(tempfile.mkdtemp())
package = root / "launching"
package.mkdir()
(package / "__init__.py").write_text("from .shapes import flat\n")
(package / "shapes.py").write_text("def flat(x):\n    return x.contiguous()\n")
sys.path.append(str(root))
launching = importlib.import_module("launching")
ROOM = colorsys.ONE_THIRD + wave.WAVE_FORMAT_PCM


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(launching.flat(x))
