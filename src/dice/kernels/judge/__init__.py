"""What the grader makes of a run: the reference, values compared, times, evidence, the record."""
