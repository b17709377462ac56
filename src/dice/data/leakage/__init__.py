"""Is a training program one of an exam's problems (`index.leak_index`)? Rules and reports: docs/guides/leakage.md.

Nothing is handed on here: planning takes a name from `report`, and `index` imports torch.
"""
