"""`torch.utils.cpp_extension.load_inline` and `load` in the candidate's process: ask the builder, load its answer.

To the candidate they look and fail like PyTorch's own: a module comes back, a refused build raises RuntimeError. What
became of each request is kept for the report.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch.utils.cpp_extension

from dice.kernels.candidate import extension_call, extension_loader
from dice.kernels.candidate.opaque import stand_in
from dice.kernels.candidate.probes import CallCounter
from dice.kernels.records.extension import BuildResult, ExtensionRequest

Ask = Callable[[dict[str, Any]], tuple[dict[str, Any], list[int]]]
"""Sends a message to the grader and waits for the answer: (message, descriptors)."""

BUILD_KEY = "_dice_build_key"
"""Attribute of the exception of a refused build: which build it is about."""


class ExtensionProxy:
    """Stands in for PyTorch's builder of extensions."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._lock = threading.RLock()  # a candidate may build from several threads
        self._uses: list[_Use] = []

    def install(self) -> None:
        """Replace PyTorch's functions, before the candidate can take them, by some that look like them."""
        module = torch.utils.cpp_extension
        module.load_inline = self._stand_in(module.load_inline, extension_call.load_inline)
        module.load = self._stand_in(module.load, extension_call.load)

    def _stand_in(self, original: Any, request: Callable[..., ExtensionRequest]) -> Any:
        """`request` makes the request of the arguments. Those that only this version of PyTorch knows have no effect."""
        names, known = list(inspect.signature(original).parameters), inspect.signature(request).parameters

        def call(*values: Any) -> Any:
            given = zip(names, values, strict=True)
            return self.load(request(**{name: value for name, value in given if name in known}))

        return stand_in(original, call)

    def load(self, request: ExtensionRequest) -> Any:
        """The module of the built extension, or its path. Raises what PyTorch raises."""
        with self._lock:
            answer, fds = self._ask({"op": "build", "request": request.model_dump(mode="json")})
            result = BuildResult.model_validate(answer["result"])
            use = _Use()
            self._uses.append(use)
            try:
                if result.status != "built":
                    refusal = extension_loader.build_exception(result, request.name)
                    setattr(refusal, BUILD_KEY, result.key)
                    raise refusal
                # By descriptor: the cache, with everybody's builds, is out of the candidate's sight.
                path = f"/proc/self/fd/{fds[0]}"
                module = extension_loader.load_extension(path, request.name, is_python_module=request.is_python_module)
            finally:
                for fd in fds:
                    os.close(fd)
            use.loaded = True
            if isinstance(module, ModuleType) and result.launches != "counted":
                use.counter = CallCounter(module)
            return module

    # ---- counting ----

    def start_counting(self) -> None:
        """Set all counts to 0."""
        for use in self._uses:
            if use.counter is not None:
                use.counter.calls = 0

    def keep_calls(self) -> None:
        """Remember the calls into extensions without launch counters since `start_counting`."""
        for use in self._uses:
            if use.counter is not None:
                use.calls_forward = use.counter.calls

    def uses(self) -> list[dict[str, Any]]:
        """What became of each request, in their order."""
        return [{"loaded": use.loaded, "calls_forward": use.calls_forward} for use in self._uses]


class _Use:
    """What became of one request."""

    def __init__(self) -> None:
        self.loaded = False
        self.calls_forward: int | None = None
        self.counter: CallCounter | None = None
