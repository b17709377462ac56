"""The problem's own program, run by the grader: inputs, weights, expected outputs. Trusted.

Seeds follow KernelBench (src/eval.py, `eval_kernel_against_ref`): a given seed draws one integer per trial and is
itself the seed of the weights. Without a given seed, each seed is drawn independently and kept secret: the candidate
must know the seed of the weights, and it must not tell anything about the inputs.
"""

from __future__ import annotations

import contextlib
import copy
import secrets
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_structure, tree_unflatten

from dice.errors import DiceError
from dice.kernels.candidate.full_memory import lacked_memory
from dice.kernels.cpu.device import CudaOnCpu
from dice.kernels.grader.gpu_memory import Sizes
from dice.kernels.sandbox.leaves import tensors_of
from dice.kernels.sandbox.seeding import seed_generators
from dice.kernels.sandbox.values import UnsupportedValue, lay_out


@dataclass(frozen=True)
class Seeds:
    """Seeds of one candidate's run. `forward` seeds are set before each call, for operators that draw random numbers."""

    weights: int
    inputs: tuple[int, ...]
    forward: tuple[int, ...]

    @classmethod
    def draw(cls, seed: int | None, n: int) -> Seeds:
        """Seeds of `n` trials. With `seed`: KernelBench's sequence. Without: secret ones."""
        if seed is None:
            first, *rest = (secrets.randbits(48) for _ in range(2 * n + 1))
            return cls(first, tuple(rest[:n]), tuple(rest[n:]))
        generator = torch.Generator().manual_seed(seed)
        trials = tuple(int(torch.randint(0, 2**32 - 1, (1,), generator=generator)) for _ in range(n))
        return cls(seed, trials, trials)


@dataclass(frozen=True)
class Trial:
    """One call of the reference."""

    inputs: list[Any]
    forward_seed: int
    expected: Any


class Reference:
    """One problem, executed in its own namespace. Raises DiceError when the file is not a problem."""

    def __init__(self, problem_id: str, code: str, device: torch.device) -> None:
        self.problem_id = problem_id
        self.code = code
        self.device = device
        self._model: torch.nn.Module | None = None
        self._model_seed: int | None = None
        self._on_cpu: Reference | None = None
        self.namespace: dict[str, Any] = {"__name__": "problem", "__builtins__": __builtins__}
        self._names_cuda = device.type == "cpu" and "cuda" in code
        with self._blamed("cannot be executed"), kept_flags():
            exec(compile(code, f"<{problem_id}>", "exec"), self.namespace)
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if name not in self.namespace:
                raise DiceError(f"Problem {problem_id}: defines no {name}.")

    @contextlib.contextmanager
    def _blamed(self, what: str) -> Iterator[None]:
        """Errors in the block are the problem's. On the CPU back end, `cuda` means the CPU in it."""
        pretence = CudaOnCpu() if self._names_cuda else None
        try:
            yield
        except (DiceError, torch.OutOfMemoryError, MemoryError):
            raise
        except Exception as error:
            text = " ".join(str(error).split())[:300]
            # Without its traceback: from Python 3.12 on it refers to the frames of all callers, and they refer to the
            # error. This cycle would keep their tensors, gigabytes of a GPU, until the garbage collector runs.
            error.__traceback__ = None
            if lacked_memory(error) == "gpu":  # a candidate fills the card: no fault of the problem's
                raise torch.OutOfMemoryError(text) from error
            raise DiceError(f"Problem {self.problem_id}: {what} ({type(error).__name__}: {text}).") from error
        finally:
            if pretence is not None:
                pretence.uninstall()

    def init_inputs(self, seed: int) -> list[Any]:
        """Arguments of `Model`."""
        seed_generators(seed, self.device)
        with self._blamed("get_init_inputs fails"):
            arguments = list(self.namespace["get_init_inputs"]())
        return self._sendable(arguments)

    def inputs(self, seed: int, device: torch.device | None = None) -> list[Any]:
        """Arguments of one call of `forward`, made on the CPU as KernelBench does, or on `device`: much faster, with other
        numbers of the same distribution. Raises DiceError where `get_inputs` fails, or needs the CPU."""
        seed_generators(seed, self.device)
        with self._blamed("get_inputs fails"), device or contextlib.nullcontext():
            arguments = list(self.namespace["get_inputs"]())
        return self._sendable(arguments)

    @cached_property
    def sizes(self) -> Sizes:
        """Bytes of weights, inputs, and the largest that an operator of forward makes. Where the model needs values, no
        weights are counted, and outputs as large as the inputs."""
        made = _LargestMade()
        with contextlib.suppress(DiceError, torch.OutOfMemoryError, MemoryError), self._without_values() as program:
            arguments = program["get_inputs"]()
            model = program["Model"](*program["get_init_inputs"]())
            with torch.no_grad(), made:
                outputs = model(*arguments)
            return Sizes(_bytes_of(arguments), _bytes_of(model.state_dict()), max(made.n_bytes, _bytes_of(outputs)))
        return Sizes(self.input_bytes, 0, self.input_bytes)

    @cached_property
    def input_bytes(self) -> int:
        """Size of one call's tensors in bytes."""
        try:
            with self._without_values() as program:
                arguments = program["get_inputs"]()
        except DiceError:
            arguments = self.inputs(0)
        return _bytes_of(arguments)

    @contextlib.contextmanager
    def _without_values(self) -> Iterator[dict[str, Any]]:
        """The program's namespace, executed anew with fake tensors, which have sizes and take neither time nor memory. Raises
        DiceError where it needs their values."""
        with warnings.catch_warnings(action="ignore"), kept_flags(), FakeTensorMode(), self._blamed("needs values"):
            yield Reference(self.problem_id, self.code, torch.device("cpu")).namespace

    def _sendable(self, arguments: list[Any]) -> list[Any]:
        try:
            lay_out(arguments)
        except UnsupportedValue as error:
            raise DiceError(f"Problem {self.problem_id}: an input cannot be passed on: {error}.") from error
        return arguments

    def model(self, seed: int) -> torch.nn.Module:
        """`Model` built after `seed`, on the device. The last model is kept."""
        model = self._model
        if model is None or self._model_seed != seed:
            self.forget()
            arguments = [to_device(argument, self.device) for argument in self.init_inputs(seed)]
            seed_generators(seed, self.device)
            with self._blamed("Model cannot be built"), torch.no_grad():
                model = self.namespace["Model"](*arguments).to(self.device)
            self._model, self._model_seed = model, seed
        return model

    def on_cpu(self) -> Reference:
        """The same program on the CPU."""
        if self._on_cpu is None:
            self._on_cpu = Reference(self.problem_id, self.code, torch.device("cpu"))
        return self._on_cpu

    def forget(self) -> None:
        """Free the model."""
        self._model = None

    def run(self, model: torch.nn.Module, inputs: list[Any], seed: int) -> Any:
        """One call on inputs that are on the device. The call may change them."""
        seed_generators(seed, self.device)
        with self._blamed("Model's forward fails"), torch.no_grad():
            outputs = model(*inputs)
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            return outputs

    def run_wide(self, weights_seed: int, inputs: list[Any], seed: int) -> Any:
        """As `run`, with weights and inputs in fp64."""
        model = copy.deepcopy(self.model(weights_seed)).double()
        return self.run(model, widened(to_device(inputs, self.device)), seed)


class _LargestMade(TorchDispatchMode):
    """The largest result of an operator, in bytes."""

    n_bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.n_bytes = max(self.n_bytes, _bytes_of(result))
        return result


def _bytes_of(value: Any) -> int:
    """Of views that repeat elements, those of the memory behind them."""
    leaves = tensors_of(value)
    return sum(min(leaf.nbytes, leaf.untyped_storage().nbytes()) for leaf in leaves)


def widened(value: Any) -> Any:
    """A nested value with its floating-point tensors in fp64."""
    return tree_map(lambda leaf: leaf.double() if torch.is_tensor(leaf) and leaf.is_floating_point() else leaf, value)


def like(value: Any, other: Any) -> Any:
    """`other` with its tensors cast to the dtypes of `value`, where both have the same structure."""
    leaves, kinds = tree_leaves(other), tree_leaves(value)
    if len(leaves) != len(kinds):
        return other
    cast = [
        a.to(b.dtype) if torch.is_tensor(a) and torch.is_tensor(b) else a for a, b in zip(leaves, kinds, strict=True)
    ]
    return tree_unflatten(cast, tree_structure(other))


def in_order_of(other: Any, value: Any) -> Any:
    """`value` with the keys of its dictionaries in the order of those of `other`: so are its leaves."""
    if isinstance(other, dict) and isinstance(value, dict) and other.keys() == value.keys():
        return {key: in_order_of(part, value[key]) for key, part in other.items()}
    if isinstance(other, list | tuple) and type(value) in (list, tuple) and len(other) == len(value):
        return type(value)(in_order_of(*pair) for pair in zip(other, value, strict=True))
    return value


def to_device(value: Any, device: torch.device | None) -> Any:
    """A copy of a nested value with its tensors on `device`; None: on the device of each."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(device or value.device, copy=True)
    if isinstance(value, list | tuple):
        parts = [to_device(part, device) for part in value]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*parts)
        return type(value)(parts) if type(value) in (list, tuple, torch.Size) else parts
    if isinstance(value, dict):
        return {key: to_device(part, device) for key, part in value.items()}
    return value


@contextlib.contextmanager
def kept_flags() -> Iterator[None]:
    """Restore PyTorch's global switches afterwards: one problem's settings must not reach the next."""
    matmul: Any = torch.backends.cuda.matmul
    cudnn: Any = torch.backends.cudnn
    dtype, precision = torch.get_default_dtype(), torch.get_float32_matmul_precision()
    flags = (matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic, cudnn.enabled)
    grad = torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_float32_matmul_precision(precision)
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic, cudnn.enabled = flags
        torch.set_grad_enabled(grad)


@contextlib.contextmanager
def exact_products() -> Iterator[bool]:
    """PyTorch without TF32 in fp32 products and convolutions; yields whether it was without already."""
    matmul: Any = torch.backends.cuda.matmul
    cudnn: Any = torch.backends.cudnn
    with kept_flags():
        were_exact = not (matmul.allow_tf32 or cudnn.allow_tf32)
        matmul.allow_tf32 = cudnn.allow_tf32 = False
        yield were_exact
