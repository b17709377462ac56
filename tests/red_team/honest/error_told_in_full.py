# problem: relu
# mechanism: an error of a self-test is caught and told with its lines
# near: frame_access
# status: correct
# include: relu
import logging
import traceback
import warnings

log = logging.getLogger(__name__)
try:
    ext.relu(3)
except TypeError as error:
    log.debug("as expected: %s", traceback.format_exception(error)[-1])
    warnings.warn("relu takes tensors only", stacklevel=1)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
