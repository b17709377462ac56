"""Whether memory holds an answer, and in which form. Pure functions.

A candidate whose kernels are switched off still writes to memory. Where the answer stands there, somebody else than the
kernels has computed it, also when it stands there scaled, shifted, transposed, padded, cut into parts or as another
dtype, for a kernel to undo.

    find_answer(answer, [memory, ...])       # {"equal": 0.94}

equal        the same values, in order: at any offset, in rows of another pitch, in every second or fourth element, in any
             order of the dimensions, in parts; in half the bits of a number too
scaled       the same, after one multiplication and one addition for all
rearranged   the same values in any order, scaled or not, in one piece of memory that holds nothing else
transformed  logarithms, exponentials, reciprocals, differences or running sums of the answer, scaled or not
combined     one sum of several pieces, each times a number, is the answer

The values are compared at up to 4,096 places of the answer. Elements that are zero, not finite, or equal to the most
frequent value say nothing and do not count. An answer of a few values only must be there as a whole.
"""

from __future__ import annotations

from dice.kernels.likeness.search import Search, find_answer, find_outputs

__all__ = ["Search", "find_answer", "find_outputs"]
