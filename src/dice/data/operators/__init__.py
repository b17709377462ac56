"""The PyTorch operators that a program applies, read from its source."""

from dice.data.operators.interpreter import operators_of_source

__all__ = ["operators_of_source"]
