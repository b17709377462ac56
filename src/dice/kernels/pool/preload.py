"""What multiprocessing's fork server imports before it forks workers: the one module whose import acts.

While it imports, the collector of garbage would look through all of PyTorch many times and find nothing. Later it leaves
out what is frozen: the workers share that memory, and their own rounds are short.
"""

import gc

gc.disable()

import dice.kernels.grader.executor  # noqa: E402, F401

gc.freeze()
gc.enable()
