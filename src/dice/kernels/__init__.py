"""The kernel verifier: extract, build, run, compare, time and check CUDA kernels. Its face is `dice.kernels.api`."""
