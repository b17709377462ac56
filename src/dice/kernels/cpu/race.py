"""Does a wrong result on the CPU come from a data race that may give the right result on a GPU?

On a GPU the threads of a block run at the same time; here they run in an order, and the order can be chosen. A program
without a race computes the same in every order. So when the result of a candidate is wrong, it is run again in other
orders: if the results differ from each other, they depend on what CUDA leaves open, and the difference to the reference
proves nothing about the GPU. The verdict is then `unsupported_on_cpu` with `Race.message`, not `wrong_value`.

    race = prove_race(forward, kernels, same)          # forward(turn) runs the candidate on the same inputs
    if race is not None: status, message, note = "unsupported_on_cpu", race.message, race.note
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dice.kernels.cpu.runtime import Order

Outputs = TypeVar("Outputs")


@dataclass(frozen=True)
class Turn:
    """The order of threads in one run: arguments of `CpuRuntime.set_order`."""

    order: Order = Order.ASCENDING
    seed: int = 1
    kernel: str = ""
    """Only this kernel runs in `order`, the others ascending; "" for all."""


@dataclass(frozen=True)
class Race:
    """A proven race. `kernel`: the first kernel (by name) whose order alone changes the result, or "" when none does."""

    kernel: str
    turn: Turn

    @property
    def message(self) -> str:
        """For a verdict's `message`."""
        return f"unsupported_on_cpu: data race in {self._where} ({self._how})"

    @property
    def note(self) -> str:
        """For a verdict's `notes`."""
        return f"data race in {self._where}: proven by the order of threads"

    @property
    def _where(self) -> str:
        return f"kernel {self.kernel}" if self.kernel else "its kernels together"

    @property
    def _how(self) -> str:
        return f"results depend on the order of threads: ascending and {self.turn.order.name.lower()} differ"


TURNS = (Turn(Order.DESCENDING), Turn(Order.RANDOM, 0x9E3779B9), Turn(Order.RANDOM, 0x85EBCA6B))


def prove_race(
    forward: Callable[[Turn], Outputs],
    kernels: Sequence[str],
    same: Callable[[Outputs, Outputs], bool],
) -> Race | None:
    """Look for an order of threads that changes the result.

    forward: runs the candidate, on the same inputs and seeds each time, after `CpuRuntime.set_order(turn...)`.
    kernels: names of the kernels that the candidate launches. same: whether two outputs agree within the tolerance of
    the verdict.
    None: the result does not depend on the order, or it is not the same each time in one order (random numbers, results
    kept from earlier calls).
    """
    first = forward(Turn())
    if not same(first, forward(Turn())):
        return None

    def differs(turn: Turn) -> bool:
        other = forward(turn)
        if same(first, other):
            return False
        # The order must be the cause, not results that the candidate keeps of earlier calls by address: addresses
        # repeat every few calls, this sequence of orders does not.
        expected = {turn: other, Turn(): first}
        return all(same(expected[order], forward(order)) for order in (turn, Turn(), turn, Turn(), Turn(), turn))

    for turn in TURNS:
        if not differs(turn):
            continue
        for kernel in sorted(set(kernels)):
            alone = Turn(turn.order, turn.seed, kernel)
            if differs(alone):
                return Race(kernel, alone)
        return Race("", turn)
    return None
