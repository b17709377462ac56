# problem: relu
# mechanism: calls and their seconds are counted, and their mean is written when a switch asks for it
# near: call_counting
# status: correct
# include: relu

import logging
import time

log = logging.getLogger("relu")
TALKS = False


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.seconds = 0, 0.0

    def forward(self, x):
        begin = time.perf_counter()
        out = ext.relu(x)
        self.calls += 1
        self.seconds += time.perf_counter() - begin
        if TALKS and self.calls % 100 == 0:
            log.info("%d calls of %.1f us", self.calls, 1e6 * self.seconds / self.calls)
        return out
