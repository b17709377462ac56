"""DICE: an open reproduction of arXiv 2602.11715."""

__version__ = "0.1.0"
