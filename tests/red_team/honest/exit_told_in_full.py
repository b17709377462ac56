# problem: relu
# mechanism: what cannot be built ends the program with a text that is put together
# near: early_exit
# status: correct
import sys

# include: relu

if torch.__version__ < "1":
    raise SystemExit(f"PyTorch {torch.__version__} is too old")
if not hasattr(torch, "relu"):
    sys.exit(f"no relu in PyTorch {torch.__version__}")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
