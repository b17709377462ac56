"""Operators that do several steps at once, and what they count for where the reference writes the steps out: attention,
norms, convolutions, losses, activations. Work of other operators: `workload`.
"""

from __future__ import annotations

from dice.kernels.checks.workload import COMPOSITE, REDUCTION, is_contraction, own_name, work_of
from dice.kernels.records.evidence import OpUse

_STEPS = {
    "attention": "mul|div tril|triu|eq|ne|gt|ge|lt|le masked_fill+|where+|add+ _softmax",
    "_safe_softmax": "mul|div _softmax",  # in attention for which PyTorch has no single operator
    "convolution": "constant_pad_nd im2col|col2im",
    "product": "mul sum|add+",
    "norm": "mean|sum var|std|var_mean|std_mean|_spread sub div|mul",
    "gain": "mul",
    "shift": "add",
    "_spread": "sub pow|mul+ mean|sum",
    "var": "mean|sum _spread",
    "std": "var",
    "linalg_vector_norm": "pow|mul+|abs sum",
    "_softmax": "amax|max sub exp sum div|mul",
    "_log_softmax": "_softmax|logsumexp sub|log",
    "logsumexp": "amax|max sub exp sum",
    "nll_loss_forward": "gather|index|one_hot mul+",
    "mse_loss": "sub+ pow|mul+ mean|sum",
    "huber_loss": "sub+ abs lt|le|gt|ge|clamp_max pow|mul+ mul sub mul where++|add+ mean|sum",
    "binary_cross_entropy_with_logits": "clamp_min|clamp|relu mul+ sub+ abs neg exp log1p|_log1p add+ mean|sum",
    "gelu": "mul|div erf|_cubic add mul+ mul",
    "_cubic": "pow|mul++++ mul add+ tanh",
    "sigmoid": "neg exp add reciprocal|div",
    "silu": "sigmoid mul+",
    "mish": "softplus tanh mul+",
    "softplus": "exp log1p|_log1p",
    "_log1p": "add log",
    "addcmul": "mul+ add+",
}
"""Steps that an operator does at once, alternatives beside each other. A step reads one large tensor and, if it is no
reduction, writes one; `+`: one more. Of alternatives that the reference has not, the last is taken to its own steps."""
_SAME_STEPS = {"smooth_l1_loss": "huber_loss", "nll_loss2d_forward": "nll_loss_forward", "glu": "silu"}
_SLACK = 1.1
"""Elements of a step to those of its large tensors, at most: it has small ones too, such as the means of all rows."""


def as_spelled_out(mine: dict[str, OpUse], theirs: dict[str, OpUse]) -> dict[str, float]:
    """Work of `mine` by kind. An operator that does several steps at once, and that `theirs` does without, counts for those
    that `theirs` has and `mine` has not, if these are more."""
    left: dict[str, float] = {}
    for ops, sign in ((theirs, 1), (mine, -1)):
        for name, use in ops.items():
            left[own_name(name)] = left.get(own_name(name), 0.0) + sign * use.elements
    own, others = _at_once(mine), _at_once(theirs)
    if not all(use.products for name, use in theirs.items() if is_contraction(name)):
        own["product"] = 0.0  # nobody knows how many are more than those of the reference
    spelled: dict[str, OpUse] = {}
    for name, use in mine.items():
        key = _key(own_name(name))
        same = min(1.0, others[key] / own[key]) if own.get(key) and not is_contraction(name) else 1.0
        spelled[name] = use.model_copy(update={"elements": int(same * use.elements)})
    steps = [(step, size - others[key]) for key, size in own.items() for step in _STEPS[key].split()]
    for step, size in sorted(steps, key=lambda item: item[0].count("|")):  # those without a choice first
        _take(step, size, left, spelled)
    work, more = work_of(mine), work_of(spelled)
    return {kind: max(work.get(kind, 0.0), more.get(kind, 0.0)) for kind in work | more}


def _key(name: str) -> str:
    if "attention" in name or "convolution" in name:
        return "attention" if "attention" in name else "convolution"
    return "norm" if name in COMPOSITE and "norm" in name else _SAME_STEPS.get(name, name)


def _at_once(ops: dict[str, OpUse]) -> dict[str, float]:
    """Elements of the large tensors of operators that do several steps at once, by key of `_STEPS`."""
    sizes = dict.fromkeys(_STEPS, 0.0)
    for name, use in ops.items():
        key = _key(own_name(name))
        if key in _STEPS:
            sizes[key] += use.largest
        if key == "norm":
            sizes["gain"] += min(use.bias, use.largest)
            sizes["shift"] += max(0, use.bias - use.largest)
        sizes["product"] += use.products
    return sizes


def _take(step: str, size: float, left: dict[str, float], spelled: dict[str, OpUse]) -> None:
    """Move a step of an operator whose large tensors have `size` elements from `left` to `spelled`."""
    choices, share = step.split("|"), 1.0
    for choice in choices:
        name = choice.rstrip("+")
        whole = size * (choice.count("+") + (1 if name in REDUCTION else 2))
        found = min(left.get(name, 0.0), _SLACK * share * whole)
        if found > 0:
            left[name] -= found
            spelled.setdefault(f"aten::{name}", OpUse(count=1, elements=0)).elements += int(found)
            share -= found / whole
        elif choice == choices[-1]:
            for part in _STEPS.get(name, "").split():
                _take(part, share * size, left, spelled)
        if share < 1 / 4:
            break
