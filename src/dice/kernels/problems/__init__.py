"""Benchmark problems: the row, folders of problem files, the mini benchmark."""
