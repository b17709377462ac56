"""Timing the GPU without the host's launches: each call waits in the GPU's queue behind memory fills.

Decides how many fills hide a program's launches, and whether they can be hidden at all. Pure logic: the function that
times one call is passed in (`dice.kernels.candidate.call_timer` does it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dice.kernels import timing
from dice.kernels.sandbox.replies import Times

MOST_FILLS = 128
"""Most fills before one call, about 7 ms on an H200. A call that takes longer to launch is timed with its launches."""
TRIES = 4
"""Tries to launch one call before the fills end. After them the time counts although the GPU waited for the host."""
LATE_SHARE = 0.1
"""Above this share of calls with such a wait, all times of a program count as containing launches."""
HOST_TRIES = 3
"""How often a candidate that seems host-bound is measured again: a slow moment of its core passes."""
_LEAST_FILLS = 2
_SAMPLES = 3


TimeCall = Callable[[int], Times]
"""Times one call behind the given number of fills."""


class QueuedCalls:
    """The timed calls of one program, each behind `fills` memory fills.

    `possible`: whether launches may be hidden at all. `brief`: whether calls are short enough to try more and more
    fills. With `fills` 0 a call starts on an idle GPU and its time contains its launches.
    """

    def __init__(self, time_call: TimeCall, possible: bool, brief: bool) -> None:
        self.fills = 0
        self.times: list[Times] = []
        fills = _LEAST_FILLS
        while possible and not self.fills and fills <= (MOST_FILLS if brief else _LEAST_FILLS):
            if all(time_call(fills).queued for _ in range(_SAMPLES)):
                self.fills = min(2 * fills, MOST_FILLS)  # a margin for slow moments of the host
            fills *= 2

    def time(self, time_call: TimeCall) -> float:
        """Time one call, again with more fills where the host was late. Returns the event time in milliseconds."""
        times = time_call(self.fills)
        for _ in range(TRIES - 1):
            if times.queued or not self.fills:
                break
            self.fills = min(2 * self.fills, MOST_FILLS)
            times = time_call(self.fills)
        self.times.append(times)
        return times.event_ms

    @property
    def without_launches(self) -> bool:
        """Whether the times are GPU times, without launches."""
        return sum(not times.queued for times in self.times) <= LATE_SHARE * len(self.times)

    def side(self, rounds: Sequence[tuple[float, float]], steps: int) -> timing.Side:
        """The times of one side of a comparison. `steps`: number of operators and launches of one call."""
        if self.without_launches:
            return timing.Side(rounds, [times.launch_ms for times in self.times])
        return timing.Side(rounds, host_ms=timing.STEP_MS * (1 + steps))


Sides = tuple[timing.Side, timing.Side]


def settled(sides: Callable[[], Sides], measure_again: Callable[[], None]) -> Sides:
    """Candidate and reference. While the candidate seems host-bound, `measure_again` adds calls of both."""
    found = sides()
    for _ in range(HOST_TRIES):
        if not timing.is_host_bound(*found):
            break
        measure_again()
        found = sides()
    return found
