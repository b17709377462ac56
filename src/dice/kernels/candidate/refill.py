"""New values in the memory of the old inputs."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_structure, tree_unflatten


def refilled(old: Any, new: Any) -> Any:
    """The value `new`, in the tensors of `old`: each takes the new values that come in its place, if they are of its dtype.

    The problem may draw shapes and numbers: a tensor keeps its memory where the new values fit into it, and plain values
    and further tensors are the new ones. A container whose tensors all stay is the old one.
    """
    mine, theirs = tree_leaves(old), tree_leaves(new)
    made = [_filled(a, b) for a, b in zip_longest(mine, theirs)][: len(theirs)]
    spec = tree_structure(new)
    if spec == tree_structure(old) and all(a is b for a, b in zip(mine, made, strict=True)):
        return old
    return tree_unflatten(made, spec)


def _filled(old: Any, new: Any) -> Any:
    if not torch.is_tensor(new):
        return old if type(old) is type(new) and old == new else new
    if not torch.is_tensor(old) or old.dtype != new.dtype:
        return new
    if old.shape != new.shape:
        old.resize_(new.shape)
    old.copy_(new)
    return old
