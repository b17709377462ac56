"""Is a training program one of an exam's problems (`leak_index`)? Rules and reports: docs/guides/leakage.md."""

from dice.data.leakage.index import LeakIndex, leak_index
from dice.data.leakage.texts import Leak

__all__ = ["Leak", "LeakIndex", "leak_index"]
