"""PyTorch without a GPU that says it has one: what candidates ask, and everything put back afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from dice.kernels.cpu.device import CudaOnCpu, on_cpu


@pytest.fixture
def device() -> Iterator[CudaOnCpu]:
    made = CudaOnCpu()
    yield made
    made.uninstall()


def test_tensors_say_that_they_are_on_the_gpu(device: CudaOnCpu) -> None:
    x = torch.ones(2, device="cuda")
    for y in (
        x,
        x.cuda(),
        x.to("cuda:0"),
        x.to(torch.device("cuda")),
        torch.ones(2).cuda(),
        torch.zeros_like(x, device=0),
    ):
        assert (y.is_cuda, y.is_cpu, y.device, y.get_device()) == (True, False, torch.device("cuda", 0), 0)
    assert x.type() == "torch.cuda.FloatTensor"
    assert x.half().type() == "torch.cuda.HalfTensor"
    assert x.type("torch.cuda.DoubleTensor").dtype == torch.float64
    assert x.cuda() is x
    assert (x + torch.arange(2)).tolist() == [1.0, 2.0]
    assert torch.device("cuda").type == "cuda"
    assert torch.device("cpu").type == "cpu"
    with device.honest():
        assert (x.is_cuda, x.device.type) == (False, "cpu")


def test_modules_generators_and_defaults(device: CudaOnCpu) -> None:
    assert torch.nn.Linear(2, 3, device="cuda")(torch.ones(2).cuda()).shape == (3,)
    assert torch.nn.Linear(2, 3).cuda().weight.is_cuda
    generator = torch.Generator(device="cuda").manual_seed(3)
    assert isinstance(generator, torch.Generator)
    assert (
        torch.rand(2, generator=generator, device="cuda").tolist()
        == torch.rand(2, generator=torch.Generator().manual_seed(3)).tolist()
    )
    assert not torch.empty(2, pin_memory=True).is_pinned()
    with torch.autocast("cuda"):
        assert (torch.ones(2, 2).cuda() @ torch.ones(2, 2).cuda()).dtype == torch.float16


def test_the_cuda_module(device: CudaOnCpu) -> None:
    assert torch.cuda.is_available()
    assert (torch.cuda.device_count(), torch.cuda.current_device()) == (1, 0)
    assert torch.cuda.get_device_capability() == (9, 0)
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with pytest.raises(RuntimeError, match="must be recorded"):
        start.elapsed_time(end)
    start.record()
    torch.cuda.current_stream().record_event(end)
    assert start.elapsed_time(end) >= 0
    assert end.query()
    with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(0):
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
    with pytest.raises(RuntimeError, match=r"^unsupported_on_cpu: CUDA graphs"):
        torch.cuda.CUDAGraph()


def test_everything_is_put_back() -> None:
    owners = (torch, torch.cuda, torch.version, torch.backends.cudnn, torch.Tensor, torch.cuda.nvtx)
    before = [dict(vars(owner)) for owner in owners]
    CudaOnCpu().uninstall()
    for owner, names in zip(owners, before, strict=True):
        assert vars(owner).keys() == names.keys()
        assert all(vars(owner)[name] is value for name, value in names.items())
    assert torch.ones(2).device.type == "cpu"


def test_only_devices_of_cuda_are_other_ones() -> None:
    cpu = torch.device("cpu")
    assert [on_cpu(value) for value in ("cuda", "cuda:1", torch.device("cuda", 1))] == ["cpu", "cpu", cpu]
    for value in ("cpu", "meta", "cudagraphs", torch.device("meta"), None, 3):
        assert on_cpu(value) == value
