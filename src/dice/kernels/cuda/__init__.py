"""CUDA C++ as text: tokens, declarations, launches, what of a source is for the device and what breaks CUDA's rules."""
