"""Benchmarks, training pairs, curation, infilling, difficulty, schedule, synthesis (docs/guides/data.md)."""
