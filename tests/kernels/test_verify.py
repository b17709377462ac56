"""`dice verify` as a command: how it ends when it is told to."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from waiting import PATIENCE_S

from dice.kernels.verify import orderly_end


def test_a_batch_systems_signal_ends_the_command_like_ctrl_c() -> None:
    before = signal.getsignal(signal.SIGTERM)
    cleaned = []

    def work() -> None:
        with orderly_end():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                threading.Event().wait(PATIENCE_S)
            finally:
                cleaned.append(True)

    with pytest.raises(SystemExit) as end:
        work()
    assert end.value.code == 128 + signal.SIGTERM
    assert cleaned
    assert signal.getsignal(signal.SIGTERM) is before
