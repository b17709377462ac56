"""From sources to a shared object: toolchain, precompiled headers, the split routes, stock, the cache."""
