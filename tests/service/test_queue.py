"""The order of waiting jobs, beside a list that is searched."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dice.service.queue import JobQueue

STEPS = st.lists(st.tuples(st.sampled_from(["put", "take", "remove"]), st.sampled_from("abcd"), st.integers(-2, 2)))


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_higher_priorities_first_then_by_arrival(steps):
    queue, waiting = JobQueue(), []  # [name, priority], in the order of arrival
    for step, name, priority in steps:
        entry = next((entry for entry in waiting if entry[0] == name), None)
        if step == "put":
            queue.put(name, priority)
            if entry is None:
                waiting.append([name, priority])
            else:
                entry[1] = max(entry[1], priority)
        elif step == "take":
            first = max(waiting, key=lambda entry: entry[1], default=None)  # the first of the highest
            assert queue.take() == (first[0] if first else None)
            waiting = [entry for entry in waiting if entry is not first]
        elif entry is not None:
            queue.remove(name)
            waiting.remove(entry)
        assert len(queue) == len(waiting)
        assert all((name in queue) == any(entry[0] == name for entry in waiting) for name in "abcd")
