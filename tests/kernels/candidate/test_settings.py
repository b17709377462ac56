"""The settings that are watched follow PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from dice.kernels.candidate.settings import settings
from dice.kernels.grader.reference import kept_flags


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    threads, mkldnn = torch.get_num_threads(), torch._C._get_mkldnn_enabled()
    with kept_flags():
        yield
    torch.set_num_threads(threads)
    torch._C._set_mkldnn_enabled(mkldnn)
    torch.use_deterministic_algorithms(False)


def changed(before: dict[str, str]) -> set[str]:
    return {name for name, value in settings().items() if before[name] != value}


def test_each_setting_shows() -> None:
    before = settings()
    torch.backends.mkldnn.set_flags(False)
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(torch.get_num_threads() + 1)
    torch.set_float32_matmul_precision("medium")
    assert changed(before) >= {
        "torch.backends.mkldnn.enabled",
        "torch.backends.cudnn.deterministic",
        "torch.deterministic_algorithms",
        "torch.num_threads",
        "torch.float32_matmul_precision",
    }


def test_what_is_put_back_does_not() -> None:
    before = settings()
    with torch.backends.mkldnn.flags(enabled=False):
        assert changed(before) == {"torch.backends.mkldnn.enabled"}
    assert not changed(before)
