"""Reading CUDA sources: tokens, functions, kernels, launches."""
