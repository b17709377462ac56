"""What is asked of a file once."""

from __future__ import annotations

from dice.kernels.checks.once import once
from dice.kernels.checks.python_source import PythonSource


def test_each_thing_is_looked_at_once_for_each_file() -> None:
    asked: list[tuple[PythonSource, str]] = []

    @once
    def length(source: PythonSource, name: str) -> int:
        asked.append((source, name))
        return len(source.values(name))

    one, other = PythonSource("a = b = 1\na = 2"), PythonSource("a = 1")
    assert [length(one, "a"), length(one, "b"), length(other, "a"), length(one, "a")] == [2, 1, 1, 2]
    assert asked == [(one, "a"), (one, "b"), (other, "a")]
