"""The fast build for any script that calls PyTorch's `load_inline` or `load`, with PyTorch's own behind it.

    with fast_builds():
        module = torch.utils.cpp_extension.load_inline("mine", cpp_sources, cuda_sources, functions=["f"])

    python -m dice.kernels.fast_builds script.py ARGUMENTS      # the same for a whole script

What the verifier's builder does not build, for whatever reason, PyTorch builds, so its errors are PyTorch's own. A source
that was built before comes from the cache of `dice verify`. Nothing is written to `build_directory`; objects are for the
visible GPUs, whatever TORCH_CUDA_ARCH_LIST says. Processes that a script starts anew build as PyTorch does.
"""

from __future__ import annotations

import contextlib
import runpy
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch.utils.cpp_extension as stock

from dice.errors import DiceError
from dice.kernels.builder.builder import Builder
from dice.kernels.candidate import extension_call
from dice.kernels.candidate.extension_loader import load_extension
from dice.kernels.pool.workers import Machine, cache_folder
from dice.kernels.records.extension import ExtensionRequest


def default_builder() -> Builder:
    """A builder for the visible GPUs, on the cache of `dice verify`. Raises HarnessError without nvcc or a GPU."""
    return Builder(cache_folder(Machine()), "cuda")


class _Fast:
    """One function of PyTorch's with the fast build in front. `make`: the builder, made at the first call."""

    def __init__(self, make: Callable[[], Builder]) -> None:
        self._make = make
        self._lock = threading.Lock()  # a builder is for one thread at a time
        self._builder: Builder | None = None
        self._broken = False

    def function(self, build_stock: Callable[..., Any], read: Callable[..., ExtensionRequest]) -> Callable[..., Any]:
        """`build_stock` with the fast build in front. `read`: makes a request of its arguments."""

        def build(*args: Any, **kwargs: Any) -> Any:
            try:
                request = read(*args, **kwargs)
            except Exception:  # noqa: BLE001 - what PyTorch would say to these arguments, it says itself
                return build_stock(*args, **kwargs)
            path = None if request.is_standalone else self._object(request)
            if path is None:
                return build_stock(*args, **kwargs)
            return load_extension(path, request.name, is_python_module=request.is_python_module)

        return build

    def _object(self, request: ExtensionRequest) -> str | None:
        """The built object; None where PyTorch is to build."""
        with self._lock:
            try:
                if self._builder is None and not self._broken:
                    self._builder = self._make()
                return self._builder.build(request).path if self._builder is not None else None
            except DiceError as error:
                self._broken = True
                print(f"dice: no fast builds here, PyTorch builds: {error}", file=sys.stderr)
                return None

    def close(self) -> None:
        """End the compilers."""
        if self._builder is not None:
            self._builder.jail.close()


@contextlib.contextmanager
def fast_builds(make: Callable[[], Builder] = default_builder) -> Iterator[None]:
    """Within the block, PyTorch's `load_inline` and `load` take the fast build. `make`: its builder."""
    fast = _Fast(make)
    before = stock.load_inline, stock.load
    stock.load_inline = fast.function(stock.load_inline, extension_call.load_inline)
    stock.load = fast.function(stock.load, extension_call.load)
    try:
        yield
    finally:
        stock.load_inline, stock.load = before
        fast.close()


def main(arguments: list[str]) -> None:
    """Run a script, as `python SCRIPT ARGUMENTS` would, with fast builds."""
    if not arguments or not Path(arguments[0]).is_file():
        raise SystemExit("usage: python -m dice.kernels.fast_builds SCRIPT [ARGUMENT ...]")
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    with fast_builds():
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
