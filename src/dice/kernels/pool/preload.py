"""What multiprocessing's fork server imports before it forks workers: the one module whose import acts.

While it imports, the collector of garbage would look through all of PyTorch many times and find nothing. Later it leaves
out what is frozen: the workers share that memory, and their own rounds are short.

Some modules of PyTorch ask for GPUs when they are imported. Asked through CUDA's runtime, no child could use CUDA.
"""

import gc
import os

gc.disable()
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"

import dice.kernels.grader.executor  # noqa: E402, F401

gc.freeze()
gc.enable()
