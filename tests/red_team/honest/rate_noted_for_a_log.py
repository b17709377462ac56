# problem: relu
# mechanism: rows and seconds since the last line of a log, begun anew by who writes it; the logger may be handed in
# near: call_counting
# status: correct
# include: relu
import logging
import time

LOG = logging.getLogger("relu")


class ModelNew(nn.Module):
    def __init__(self, log=None):
        super().__init__()
        self.log = log or LOG
        self.rows, self.next_line, self.since = 0, 512, time.perf_counter()

    def forward(self, x):
        y = ext.relu(x)
        self.rows += x.shape[0]
        if self.rows >= self.next_line:
            elapsed = time.perf_counter() - self.since
            self.log.debug("%d rows in %.3f s", self.rows, elapsed)
            self.next_line *= 2
            self.rows, self.since = 0, time.perf_counter()
        return y
