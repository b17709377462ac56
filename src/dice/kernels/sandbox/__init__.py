"""Where a candidate runs: the fork server, namespaces and limits, and the grader's end of its process."""
