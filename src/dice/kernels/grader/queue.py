"""How one program is timed behind fills of memory: how many it takes to hide its launches, and whether that can be done.

Pure logic: what times a call is handed in, and `dice.kernels.candidate.call_timer` is what the times come from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict

from dice.kernels import timing

MOST_FILLS = 128
"""Before one call: about 7 ms on an H200. What takes longer to launch is timed with its launches."""
ORDERS = 4
"""Orders of one call before it is taken with a wait for the host in it: a busy host may miss the fills' end."""
LATE_SHARE = 0.1
"""Share of calls with such a wait above which all of a program's times count as having one."""
HOST_TRIES = 3
"""Times that a candidate which seems bound by the host is asked again: a slow moment of its core passes."""
_LEAST_FILLS = 2
_SAMPLES = 3


class Times(BaseModel):
    """Times of one call, as a candidate's answer brings them: `dice.kernels.candidate.call_timer.CallTimes`."""

    model_config = ConfigDict(extra="forbid", strict=True)
    event_ms: float
    in_process_ms: float
    drain_ms: float
    order_ms: float
    queued: bool


Order = Callable[[int], Times]
"""Times one call behind so many fills."""


class Queue:
    """One program's calls behind fills.

    `possible`: whether its calls may be hidden at all. `brief`: whether they are short enough to be tried for how many
    fills it takes. With `fills` 0 calls begin on an idle GPU and have their launches in them.
    """

    def __init__(self, order: Order, possible: bool, brief: bool) -> None:
        self.fills = 0
        self.times: list[Times] = []
        fills = _LEAST_FILLS
        while possible and not self.fills and fills <= (MOST_FILLS if brief else _LEAST_FILLS):
            if all(order(fills).queued for _ in range(_SAMPLES)):
                self.fills = min(2 * fills, MOST_FILLS)  # a margin for the host's worse moments
            fills *= 2

    def time(self, order: Order) -> float:
        """One timed call, ordered again with more fills where the host was late; returns its event time."""
        times = order(self.fills)
        for _ in range(ORDERS - 1):
            if times.queued or not self.fills:
                break
            self.fills = min(2 * self.fills, MOST_FILLS)
            times = order(self.fills)
        self.times.append(times)
        return times.event_ms

    @property
    def full(self) -> bool:
        """Whether the times are the GPU's alone."""
        return sum(not times.queued for times in self.times) <= LATE_SHARE * len(self.times)

    def side(self, rounds: Sequence[tuple[float, float]], steps: int) -> timing.Side:
        """The times as a statement is made of them. `steps`: operators and launches of one call."""
        if self.full:
            return timing.Side(rounds, [times.order_ms for times in self.times])
        return timing.Side(rounds, host_ms=timing.STEP_MS * (1 + steps))


Sides = tuple[timing.Side, timing.Side]


def believed(sides: Callable[[], Sides], again: Callable[[], None]) -> Sides:
    """Candidate and reference, `sides()`; calls `again` for more calls of both while the candidate seems host-bound."""
    found = sides()
    for _ in range(HOST_TRIES):
        if not timing.is_host_bound(*found):
            break
        again()
        found = sides()
    return found
