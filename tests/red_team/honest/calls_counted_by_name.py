# problem: relu
# mechanism: a decorator counts the calls of each function in a table, and logs every 1,000
# near: call_counting
# status: correct
# include: relu_and_last
import functools
import logging
from collections import Counter

log = logging.getLogger("kernels")
calls = Counter()


def counted(function):
    @functools.wraps(function)
    def called(*arguments):
        calls[function.__name__] += 1
        if calls[function.__name__] % 1000 == 0:
            log.info("%s: %d calls", function.__name__, calls[function.__name__])
        return function(*arguments)

    return called


@counted
def relu(x):
    return ext.relu(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x)
