"""Where a candidate runs: the zygote, namespaces and limits, and the grader's end of its process."""
