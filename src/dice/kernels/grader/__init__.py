"""The trusted grader: runs candidates, compares, times, collects evidence."""
