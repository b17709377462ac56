"""Benchmarks, training pairs, curation, infilling, difficulty, schedule, synthesis (docs/data.md)."""
