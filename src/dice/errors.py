"""The two ways in which a stage can stop.

DiceError         what the user gave cannot be used: one sentence (what, where, what to do), exit code 2
└── HarnessError  the machine or our own code failed (disk, driver, a killed worker), exit code 3

A wrong *kernel* is neither: it is data, and becomes a verdict (`dice.kernels.api.Verdict`).
"""


class DiceError(Exception):
    """The input cannot be used. The message is one clear sentence for the user."""

    exit_code = 2


class HarnessError(DiceError):
    """The harness or the machine broke; the candidate is not to blame and nothing is scored."""

    exit_code = 3
