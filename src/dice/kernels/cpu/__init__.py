"""The CPU back end: CUDA C++ translated for g++, the runtime that stands in for CUDA's, races proven by order."""

LIBRARY = "libdice_cpu.so"
"""File name of the runtime that the objects of the CPU back end are linked with."""
