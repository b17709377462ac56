"""Whether a file spells the names of what it reads and stores."""

from __future__ import annotations

import pytest

from dice.kernels.checks.named import is_pythons, says_all_names
from dice.kernels.checks.python_source import PythonSource


@pytest.mark.parametrize("code", ["self.calls += 1", "getattr(self, 'calls', 0)", "setattr(self, 'calls', 1)"])
def test_written_names(code: str) -> None:
    assert says_all_names(PythonSource(code))


@pytest.mark.parametrize(
    "code",
    [
        "getattr(self, name)",
        "getattr(self, 'ca' + 'lls')",
        "hasattr(self, name)",
        "read = getattr",
        "first(getattr, 'calls')(self)",
        "[*map(getattr, [self], names)]",
        "vars(self)",
        "self.__dict__",
        "object.__setattr__(self, 'calls', 1)",
        "operator.attrgetter('calls')(self)",
    ],
)
def test_names_that_are_made_or_handed_on(code: str) -> None:
    assert not says_all_names(PythonSource(code))


def test_what_is_left_to_python() -> None:
    source = PythonSource("from own import max\nmin = 1\ndef sum(set): pass")
    assert is_pythons(source, "len")
    assert not any(is_pythons(source, name) for name in ("max", "min", "sum", "set"))
