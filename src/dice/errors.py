"""The two ways in which a stage can stop.

DiceError         what the user gave cannot be used: one sentence (what, where, what to do), exit code 2
└── HarnessError  the machine or our own code failed (disk, driver, a killed worker), exit code 3

A wrong *kernel* is neither: it is data, and becomes a verdict (`dice.kernels.api.Verdict`).
"""

from __future__ import annotations

import errno


class DiceError(Exception):
    """The input cannot be used. The message is one clear sentence for the user."""

    exit_code = 2


class HarnessError(DiceError):
    """The harness or the machine broke; the candidate is not to blame and nothing is scored."""

    exit_code = 3


DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a write fails with on a full disk, at a quota, or at a limit of file sizes."""
