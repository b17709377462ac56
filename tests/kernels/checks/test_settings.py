"""Which changes of PyTorch's settings count."""

from __future__ import annotations

import pytest

from dice.kernels.checks.settings import is_harmful
from dice.kernels.records.evidence import Change


@pytest.mark.parametrize(
    ("name", "before", "after", "harmful"),
    [
        ("torch.backends.mkldnn.enabled", "True", "False", True),
        ("torch.backends.mkldnn.enabled", "False", "True", False),
        ("torch.backends.cudnn.benchmark", "False", "True", False),
        ("torch.backends.cudnn.benchmark", "True", "False", True),
        ("torch.backends.cudnn.enabled", "True", "False", True),
        ("torch.backends.cudnn.enabled", "False", "True", False),
        ("torch.backends.cudnn.deterministic", "False", "True", True),
        ("torch.backends.cudnn.deterministic", "True", "False", False),
        ("torch.deterministic_algorithms", "False", "True", True),
        ("torch.deterministic_algorithms", "True", "False", False),
        ("torch.backends.nnpack.enabled", "True", "False", True),
        ("torch.backends.cuda.flash_sdp", "True", "False", True),
        ("torch.backends.cuda.mem_efficient_sdp", "True", "False", True),
        ("torch.backends.cuda.cudnn_sdp", "True", "False", True),
        ("torch.num_threads", "8", "1", True),
        ("torch.num_threads", "1", "8", False),
        ("torch.num_threads", "8", "8", False),
        ("torch.num_threads", "one", "ninety-nine", False),
        ("torch.num_threads", "1", "ninety-nine", True),
        ("torch.num_threads", "0", "one", False),
        ("torch.num_threads", "²", "8", False),
        ("cores", "8", "1", True),
        ("cores", "1", "8", False),
        ("torch.flush_denormal", "False", "True", True),
        ("torch.flush_denormal", "True", "False", False),
        ("torch.backends.cudnn.allow_tf32", "False", "True", True),
        ("torch.backends.cudnn.allow_tf32", "True", "False", False),
        ("torch.float32_matmul_precision", "highest", "medium", True),
        ("torch.float32_matmul_precision", "medium", "highest", False),
        ("torch.default_dtype", "torch.float32", "torch.float16", True),
        ("torch.default_dtype", "torch.float32", "torch.float64", False),
        ("torch.default_dtype", "torch.bfloat16", "torch.float32", False),
    ],
)
def test_what_is_a_change_for_the_worse(name: str, before: str, after: str, harmful: bool) -> None:
    assert is_harmful(Change(kind="flag", name=name, phase="import", before=before, after=after)) is harmful
