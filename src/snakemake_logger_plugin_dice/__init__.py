"""Snakemake's `--logger dice`; Snakemake finds a logger by the name of this package."""

from dice.study.console import LogHandler

__all__ = ["LogHandler"]
