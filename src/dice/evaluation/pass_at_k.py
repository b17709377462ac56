"""pass@k: the chance that at least one of k answers to a problem is right, from n >= k answers of which c are."""

from __future__ import annotations

import math


def pass_at_k(n: int, right: int, k: int) -> float:
    """1 - C(n - right, k) / C(n, k), without bias (M. Chen et al. 2021, arXiv 2107.03374, eq. 1).

    Raises ValueError unless 1 <= k <= n and 0 <= right <= n.
    """
    if not (1 <= k <= n and 0 <= right <= n):
        raise ValueError(f"pass@{k} of {right} right answers in {n} is not defined")
    return 1.0 - math.comb(n - right, k) / math.comb(n, k)
