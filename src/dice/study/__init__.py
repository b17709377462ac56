"""The study as data: scales and their configuration, models and tables, and which source files a stage depends on.

Imported by the Snakefile, so nothing here imports torch.
"""
