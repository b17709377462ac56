"""PyTorch in this process, as if this computer were a GPU: `cuda` means the CPU.

Candidates and problems move tensors with `.cuda()`, ask `x.is_cuda`, pass `device="cuda"` and call
`torch.cuda.synchronize()`. After `CudaOnCpu()` all of that works without a GPU: tensors stay where they are and say that
they are on `cuda:0`.

    device = CudaOnCpu()       # in the candidate's process, before its code is imported; in the grader where needed
    with device.honest():      # tensors say where they really are: for the verifier's own code in that process
        ...
    device.uninstall()

A TorchFunctionMode rewrites devices in every call of PyTorch's Python API (and is per thread, as PyTorch's modes are);
what lies outside that API - `torch.cuda.*`, a few constructors - is replaced by attribute. What a CPU cannot do
(CUDA graphs) raises a RuntimeError that begins with `unsupported_on_cpu:`.

More lenient than a GPU: tensors made on the CPU and tensors made on `cuda` may be mixed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from dice.kernels.cpu.runtime import CpuRuntime

_CUDA = torch.device("cuda", 0)
_CPU = torch.device("cpu")
_TENSOR_TYPES = {
    torch.float32: "Float",
    torch.float64: "Double",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.uint8: "Byte",
    torch.int8: "Char",
    torch.int16: "Short",
    torch.int32: "Int",
    torch.int64: "Long",
    torch.bool: "Bool",
}


def on_cpu(value: Any) -> Any:
    """A device argument with `cuda` replaced by `cpu`; anything else as it is."""
    if isinstance(value, torch.device):
        return _CPU if value.type == "cuda" else value
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value


class CudaMode(TorchFunctionMode):
    """Rewrites devices in calls of PyTorch's API."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        special = _SPECIAL.get(func)
        if special is not None:
            return special(*args, **kwargs)
        if func is torch.device:  # a name, not a place
            return _CUDA if args and type(args[0]) is int else func(*args, **kwargs)
        if "device" in kwargs:
            device = kwargs["device"]
            kwargs = {**kwargs, "device": _CPU if type(device) is int else on_cpu(device)}
        if any(isinstance(value, (torch.device, str)) for value in args):
            args = tuple(on_cpu(value) for value in args)
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        return func(*args, **kwargs)


def _cuda(self: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return self


def _device_of(self: torch.Tensor) -> torch.device:
    real = _GET_DEVICE(self)
    return _CUDA if real.type == "cpu" else real


def _type_of(self: torch.Tensor, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    if dtype is None:
        return f"torch.cuda.{_TENSOR_TYPES.get(self.dtype, 'Float')}Tensor"
    if isinstance(dtype, str):
        dtype = dtype.replace("torch.cuda.", "torch.")
    return torch.Tensor.type(self, dtype, *args, **kwargs)


_GET_DEVICE = torch.Tensor.device.__get__
_SPECIAL: dict[Any, Callable[..., Any]] = {
    torch.Tensor.cuda: _cuda,
    torch.Tensor.pin_memory: _cuda,
    torch.Tensor.is_pinned: lambda *_, **__: False,
    torch.Tensor.get_device: lambda *_: 0,
    torch.get_device: lambda *_: 0,
    torch.Tensor.type: _type_of,
    torch.Tensor.device.__get__: _device_of,
    torch.Tensor.is_cuda.__get__: lambda self: self.is_cuda or _GET_DEVICE(self).type == "cpu",  # pyright: ignore[reportAttributeAccessIssue]
    torch.Tensor.is_cpu.__get__: lambda self: False,  # pyright: ignore[reportAttributeAccessIssue]
}


class Stream:
    """torch.cuda.Stream: all work is already done."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0
    device = _CUDA
    priority = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def synchronize(self) -> None:
        """Raise what a kernel left behind."""
        synchronize()

    def query(self) -> bool:
        """Always idle."""
        return True

    def is_capturing(self) -> bool:
        """Never: there are no CUDA graphs."""
        return False

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Event | None = None) -> Event:
        """An event that happens now."""
        event = event or Event()
        event.record()
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return 0


class Event:
    """torch.cuda.Event on the host's clock."""

    cuda_event = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        """Now."""
        self._at = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """It has happened."""
        return True

    def synchronize(self) -> None:
        """Raise what a kernel left behind."""
        synchronize()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds to `end`."""
        if self._at is None or end._at is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end._at - self._at) * 1000.0


class _Properties:
    """torch.cuda.get_device_properties: the same figures as csrc/cpu/runtime/cudart.cpp gives."""

    name = "CPU execution of CUDA kernels"
    major, minor = 9, 0
    multi_processor_count = 132
    total_memory = 80 << 30
    warp_size = 32
    max_threads_per_multi_processor = 2048
    regs_per_multiprocessor = 65536
    shared_memory_per_block = 49152
    shared_memory_per_block_optin = 232448
    shared_memory_per_multiprocessor = 233472
    L2_cache_size = 50 << 20
    is_integrated = 0
    is_multi_gpu_board = 0
    gcnArchName = ""


def synchronize(device: Any = None) -> None:
    """As torch.cuda.synchronize: raises RuntimeError when a kernel has failed."""
    runtime = CpuRuntime.loaded()
    if runtime is not None and (error := runtime.take_error()) is not None:
        raise RuntimeError(f"CUDA error: {error}: {runtime.fault()}".rstrip(": "))


def _unsupported(what: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"unsupported_on_cpu: {what}")

    return refuse


def _same(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


@contextlib.contextmanager
def _nothing(*_: Any, **__: Any) -> Iterator[None]:
    yield


def _replacements() -> list[tuple[Any, str, Any]]:
    """(owner, attribute, value) of all patches."""
    cuda: Any = torch.cuda
    stream = Stream()
    constant = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "set_device": None,
        "init": None,
        "is_initialized": True,
        "get_device_name": _Properties.name,
        "get_device_capability": (_Properties.major, _Properties.minor),
        "get_device_properties": _Properties(),
        "current_stream": stream,
        "default_stream": stream,
        "set_stream": None,
        "empty_cache": None,
        "ipc_collect": None,
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "memory_reserved": 0,
        "max_memory_reserved": 0,
        "reset_peak_memory_stats": None,
        "reset_max_memory_allocated": None,
        "memory_stats": {},
        "memory_summary": "",
        "mem_get_info": (_Properties.total_memory, _Properties.total_memory),
        "manual_seed": None,
        "manual_seed_all": None,
        "seed": None,
        "seed_all": None,
        "initial_seed": 0,
        "is_bf16_supported": True,
        "get_arch_list": ["sm_90"],
        "can_device_access_peer": False,
        "set_per_process_memory_fraction": None,
        "is_current_stream_capturing": False,
        "utilization": 0,
    }
    patches: list[tuple[Any, str, Any]] = [(cuda, name, _same(value)) for name, value in constant.items()]
    patches += [
        (cuda, "synchronize", synchronize),
        (cuda, "Stream", Stream),
        (cuda, "ExternalStream", Stream),
        (cuda, "Event", Event),
        (cuda, "stream", lambda *_: stream),
        (cuda, "device", _nothing),
        (cuda, "device_of", _nothing),
        (cuda, "CUDAGraph", _unsupported("CUDA graphs")),
        (cuda, "graph", _unsupported("CUDA graphs")),
        (cuda, "make_graphed_callables", _unsupported("CUDA graphs")),
        (cuda.nvtx, "range_push", _same(0)),
        (cuda.nvtx, "range_pop", _same(0)),
        (cuda.nvtx, "mark", _same(None)),
        (cuda.nvtx, "range", _nothing),
        (torch.version, "cuda", "13.0"),
        (torch.backends.cudnn, "is_available", _same(True)),
        (torch.backends.cudnn, "version", _same(90000)),
        (torch, "set_default_device", _set_default_device(torch.set_default_device)),
        (torch, "set_default_tensor_type", _set_default_type(torch.set_default_tensor_type)),
        (torch.amp.autocast_mode.autocast, "__init__", _autocast_init(torch.amp.autocast_mode.autocast.__init__)),
        (torch, "Generator", _generator(torch.Generator)),
        (torch.Tensor, "record_stream", _same(None)),  # it looks at its argument's type before any mode is asked
    ]
    for name in _TENSOR_TYPES.values():
        if hasattr(torch, f"{name}Tensor"):
            patches.append((cuda, f"{name}Tensor", getattr(torch, f"{name}Tensor")))
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        values = {"is_available": True, "device_count": 1, "current_accelerator": torch.device("cuda")}
        values |= {"current_device_index": 0, "set_device_index": None, "current_stream": stream}
        patches += [(accelerator, name, _same(value)) for name, value in values.items() if hasattr(accelerator, name)]
        patches.append((accelerator, "synchronize", synchronize))
    return patches


def _set_default_device(original: Any) -> Any:
    def set_default_device(device: Any) -> None:
        original(on_cpu(device))

    return set_default_device


def _set_default_type(original: Any) -> Any:
    def set_default_tensor_type(kind: Any) -> None:
        original(kind.replace("torch.cuda.", "torch.") if isinstance(kind, str) else kind)

    return set_default_tensor_type


def _autocast_init(original: Any) -> Any:
    def __init__(self: Any, device_type: str, dtype: Any = None, enabled: bool = True, **kwargs: Any) -> None:
        if device_type == "cuda":  # the same types as on a GPU, whose default is float16
            device_type, dtype = "cpu", dtype or torch.float16
        original(self, device_type, dtype, enabled, **kwargs)

    return __init__


def _generator(original: Any) -> Any:
    class Meta(type):
        def __call__(cls, device: Any = "cpu") -> Any:
            return original(device=on_cpu(device))

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original)

    return Meta("Generator", (), {"__doc__": original.__doc__})


class CudaOnCpu:
    """Makes `cuda` mean the CPU in this process (the rewriting of devices: in this thread), until `uninstall`."""

    def __init__(self) -> None:
        self._saved: list[tuple[Any, str, Any]] = []
        for owner, name, value in _replacements():
            self._saved.append((owner, name, owner.__dict__.get(name, _ABSENT)))
            setattr(owner, name, value)
        self._mode = CudaMode()
        self._mode.__enter__()

    @contextlib.contextmanager
    def honest(self) -> Iterator[None]:
        """Within the block tensors say where they are, and PyTorch's API takes devices as they are given."""
        with torch._C.DisableTorchFunction():
            yield

    def uninstall(self) -> None:
        """Put everything back. Modes that were entered since must have been left."""
        self._mode.__exit__(None, None, None)
        for owner, name, value in reversed(self._saved):
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


_ABSENT = object()
