"""The page on one kernel: what `dice verify kernel.py --reference model.py` tells its author."""
