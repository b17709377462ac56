"""Other conditions under which a kernel should be right too: values, weights, sizes, memory layouts, orders of threads."""
