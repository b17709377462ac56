"""Worker processes: builders feed executors."""
