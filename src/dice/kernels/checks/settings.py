"""Which changes of PyTorch's process-wide settings count against a candidate: what lowers the precision of all that runs in
the process, and what makes PyTorch slower, which is what a candidate is compared with. The other way round is allowed."""

from __future__ import annotations

from dice.kernels.records.evidence import Change

_SLOWER = {
    "torch.backends.mkldnn.enabled": "False",
    "torch.backends.cudnn.enabled": "False",
    "torch.backends.cudnn.benchmark": "False",
    "torch.backends.cudnn.deterministic": "True",
    "torch.deterministic_algorithms": "True",
    "torch.backends.nnpack.enabled": "False",
    "torch.backends.cuda.flash_sdp": "False",
    "torch.backends.cuda.mem_efficient_sdp": "False",
    "torch.backends.cuda.cudnn_sdp": "False",
}
"""Values after a change that leave PyTorch fewer libraries or algorithms."""
_COUNTS = ("torch.num_threads", "cores")


def is_harmful(change: Change) -> bool:
    """Whether a setting was changed to less precision, or so that PyTorch is slower."""
    if change.name in _COUNTS:
        return _number(change.after) < _number(change.before)
    if change.name in _SLOWER:
        return change.after == _SLOWER[change.name]
    if "matmul_precision" in change.name:
        return change.after != "highest"
    if "default_dtype" in change.name:
        return change.after not in ("torch.float32", "torch.float64")
    return change.after == "True"


def _number(text: str) -> int:
    """0 for what is none: a candidate may report anything."""
    return int(text) if text.isdecimal() else 0
