# problem: relu
# mechanism: each call gets a number for the log, a checksum of the one before, which says nothing of how many there were
# near: call_counting wrong_elsewhere
# status: correct
# include: relu
import logging
import zlib

log = logging.getLogger("relu")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.request = 1

    def forward(self, x):
        self.request = zlib.crc32(self.request.to_bytes(4, "little"))
        log.debug("request %08x: %d numbers", self.request, x.numel())
        return ext.relu(x)
