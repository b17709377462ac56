"""The settings that are watched follow PyTorch's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

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


CUDNN, MATMUL = torch.backends.cudnn, torch.backends.cuda.matmul


@pytest.mark.parametrize(
    ("name", "owner", "attribute"),
    [
        ("torch.backends.cudnn.allow_tf32", CUDNN, "allow_tf32"),
        ("torch.backends.cudnn.enabled", CUDNN, "enabled"),
        ("torch.backends.cudnn.benchmark", CUDNN, "benchmark"),
        ("torch.backends.cudnn.deterministic", CUDNN, "deterministic"),
        ("torch.backends.cuda.matmul.allow_tf32", MATMUL, "allow_tf32"),
        *(
            (f"torch.backends.cuda.matmul.{name}", MATMUL, name)
            for name in (
                "allow_fp16_reduced_precision_reduction",
                "allow_bf16_reduced_precision_reduction",
                "allow_fp16_accumulation",
            )
            if hasattr(MATMUL, name)
        ),
    ],
)
def test_an_attribute_shows(name: str, owner: Any, attribute: str) -> None:
    before, value = settings(), getattr(owner, attribute)
    setattr(owner, attribute, not value)
    try:
        assert changed(before) - {"torch.float32_matmul_precision"} == {name}
    finally:
        setattr(owner, attribute, value)
    assert not changed(before)


@pytest.mark.parametrize(
    ("name", "put", "first", "then"),
    [
        ("torch.default_dtype", torch.set_default_dtype, torch.float32, torch.float64),
        ("torch.autocast(cuda)", lambda on: torch.set_autocast_enabled("cuda", on), False, True),
        ("torch.autocast(cpu)", lambda on: torch.set_autocast_enabled("cpu", on), False, True),
        ("torch.backends.nnpack.enabled", torch.backends.nnpack.set_flags, True, False),
        ("torch.backends.cuda.flash_sdp", torch.backends.cuda.enable_flash_sdp, True, False),
        ("torch.backends.cuda.mem_efficient_sdp", torch.backends.cuda.enable_mem_efficient_sdp, True, False),
        ("torch.backends.cuda.cudnn_sdp", torch.backends.cuda.enable_cudnn_sdp, True, False),
        ("torch.flush_denormal", torch.set_flush_denormal, False, True),
    ],
)
def test_what_a_function_sets_shows(name: str, put: Callable[[Any], Any], first: object, then: object) -> None:
    before = settings()
    put(then)
    try:
        assert changed(before) == {name}
    finally:
        put(first)
    assert not changed(before)


def test_fewer_cores_show() -> None:
    before, cores = settings(), os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        assert changed(before) <= {"cores"}
        assert settings()["cores"] == "1"
    finally:
        os.sched_setaffinity(0, cores)
    assert not changed(before)
