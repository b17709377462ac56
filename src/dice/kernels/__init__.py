"""The kernel verifier: extract, build, execute, judge, time and police CUDA kernels (docs/verifier.md)."""
