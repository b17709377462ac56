"""`torch.utils.cpp_extension.load_inline` and `load` in the candidate's process: ask the builder, load its answer.

To the candidate they look and fail like PyTorch's own: a module comes back, a refused build raises RuntimeError. What
became of each request is kept for the report.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch.utils.cpp_extension

from dice.kernels.candidate import extension_loader
from dice.kernels.candidate.extension_call import request_from_load, request_from_load_inline
from dice.kernels.candidate.probes import CallCounter
from dice.kernels.records.extension import BuildResult, ExtensionRequest, LaunchCount

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
        """Replace PyTorch's functions, before the candidate can take them."""
        torch.utils.cpp_extension.load_inline = self.load_inline
        torch.utils.cpp_extension.load = self.load

    def load_inline(self, *args: Any, **kwargs: Any) -> Any:
        """As torch.utils.cpp_extension.load_inline."""
        return self._load(request_from_load_inline(*args, **kwargs))

    def load(self, *args: Any, **kwargs: Any) -> Any:
        """As torch.utils.cpp_extension.load."""
        return self._load(request_from_load(*args, **kwargs))

    def _load(self, request: ExtensionRequest) -> Any:
        with self._lock:
            answer, fds = self._ask({"op": "build", "request": request.model_dump(mode="json")})
            result = BuildResult.model_validate(answer["result"])
            use = _Use(result.launches)
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
        extension_loader.reset_launches()
        for use in self._uses:
            if use.counter is not None:
                use.counter.calls = 0

    def launches(self) -> dict[str, int] | None:
        """Launches per kernel since `start_counting`; None when some loaded extension may launch without being counted."""
        if any(use.loaded and use.launches == "unknown" for use in self._uses):
            return None
        return {name: count for name, count in extension_loader.read_launches().items() if count}

    def failed_launches(self) -> dict[str, int]:
        """Launches that the runtime refused since `start_counting`, per kernel."""
        return extension_loader.read_failed_launches()

    def keep_calls(self) -> None:
        """Remember the calls into extensions without launch counters since `start_counting`."""
        for use in self._uses:
            if use.counter is not None:
                use.calls_forward = use.counter.calls

    def uses(self) -> list[dict[str, Any]]:
        """What became of each request, in their order."""
        return [{"loaded": use.loaded, "calls_forward": use.calls_forward} for use in self._uses]

    def set_launches(self, enabled: bool) -> None:
        """Let kernels run, or make their launches do nothing."""
        extension_loader.set_launches(enabled=enabled)


class _Use:
    """What became of one request."""

    def __init__(self, launches: LaunchCount) -> None:
        self.launches = launches
        self.loaded = False
        self.calls_forward: int | None = None
        self.counter: CallCounter | None = None
