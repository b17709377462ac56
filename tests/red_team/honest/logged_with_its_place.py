# problem: relu
# mechanism: a message is logged with file and line once the extension is there
# near: frame_access
# status: correct
# include: relu
import logging

logging.basicConfig(format="%(filename)s:%(lineno)d %(funcName)s %(message)s", level=logging.DEBUG, force=True)
logging.getLogger(__name__).debug("built %s", ext)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
