"""The CPU back end: CUDA C++ translated for g++, the runtime that stands in for CUDA's, races proven by order."""
