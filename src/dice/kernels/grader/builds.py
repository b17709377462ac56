"""The builds that one candidate requests, and what came of them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dice.kernels.builder.launch_symbols import imported_functions
from dice.kernels.checks.sensitive import C_FUNCTIONS
from dice.kernels.grader.place import Place
from dice.kernels.grader.record import Record
from dice.kernels.records.evidence import ExtensionUse, RunEvidence
from dice.kernels.records.extension import BuildResult, ExtensionRequest
from dice.kernels.sandbox.channel import ChannelGarbage
from dice.kernels.sandbox.session import CandidateFailure, CandidateRaised
from dice.kernels.sandbox.shared_memory import sealed_copy
from dice.kernels.source.cuda_source import CudaSource

_COMPILERS_LAYERS = ("jail", "pid_namespace", "no_network", "own_user", "seccomp")
MAX_EXTENSIONS = 64
"""Most builds that one candidate may request."""


class Builds:
    """The builds of one candidate. Those of its first process are noted in its record."""

    def __init__(self, place: Place, record: Record, evidence: RunEvidence) -> None:
        self.requests: list[ExtensionRequest] = []
        """What the first process asked for, in order."""
        self.counts_steps = False
        """Whether what is built from here on counts the steps of its code (CPU back end)."""
        self._place, self._record, self._evidence = place, record, evidence
        self._again = False
        self._asked, self._spent_s = 0, 0.0
        self._objects: dict[str, int] = {}

    def begin(self, again: bool) -> None:
        """A new process asks from here on. again: another one did before, so what is built is known."""
        self._again = again
        self._asked, self._spent_s = 0, 0.0

    def answer(self, message: dict[str, Any]) -> tuple[dict[str, Any], int | None]:
        """Build an extension: the reply, and a descriptor of the built object that its receiver closes.

        Raises CandidateFailure for too many builds, ChannelGarbage for what is no request, and HarnessError.
        """
        begun, spent_s = time.monotonic(), 0.0
        try:
            request = ExtensionRequest.model_validate(message.get("request"))
        except ValidationError as error:
            raise ChannelGarbage(f"a build request with {error.error_count()} faults") from error
        request = request.model_copy(update={"counts_steps": self.counts_steps})
        limit_s = self._place.limits.build_timeout_s
        if self._asked >= MAX_EXTENSIONS or self._spent_s > limit_s:
            raise CandidateFailure("timeout", f"its builds took over {limit_s:g} s or are over {MAX_EXTENSIONS}")
        self._asked += 1
        result = self._place.builder.known(request)
        if result is None:
            with self._place.gpu_lent():
                result = self._place.builder.build(request)
                spent_s = time.monotonic() - begun  # without the wait until others leave the GPU again
        if not self._again:
            self._note(request, result)
            self._record.spent("build", spent_s)
        self._spent_s += spent_s
        return {"result": result.model_dump()}, self._object(result)

    def _note(self, request: ExtensionRequest, result: BuildResult) -> None:
        self._record.builds.append(result)
        self.requests.append(request)
        self._note_compilers(result)
        self._evidence.extensions.append(
            ExtensionUse(
                name=request.name,
                status=result.status,
                loaded=False,
                phase=self._evidence.reached,
                message=result.message[:500],
                imports=_imports(result),
            )
        )

    def _object(self, result: BuildResult) -> int | None:
        """Descriptor of a copy of the built object. The cache's own could be reopened for writing where the candidate runs
        as the same user. One copy for each object: the dynamic loader knows by it what it has loaded already."""
        if result.path is None:
            return None
        if result.key not in self._objects:
            self._objects[result.key] = sealed_copy(result.path, result.object_sha256)
        return os.dup(self._objects[result.key])

    def refuse_unsupported(self) -> None:
        """A build that the CPU back end does not support is final, also where the candidate goes on without it."""
        for build in self._record.builds:
            if build.status == "unsupported_on_cpu":
                self._record.stage = "build"
                raise CandidateFailure("unsupported_on_cpu", build.message)

    def texts(self) -> list[str]:
        """All sources."""
        return [text for request in self.requests for text in request.texts]

    def keep_variables(self) -> bool:
        """Whether the sources have variables that keep their value from call to call, on the host or on the device."""
        return any(CudaSource(text).variables for text in self.texts())

    def close(self) -> None:
        """Close the copies of the built objects."""
        while self._objects:
            os.close(self._objects.popitem()[1])

    def _note_compilers(self, result: BuildResult) -> None:
        """Add the layers that confined the compilers to those of the candidate."""
        layers = [f"compilers_{name}" for name in result.isolation if name in _COMPILERS_LAYERS]
        self._record.isolation += [name for name in layers if name not in self._record.isolation]
        note = "isolation layers that the compilers lacked: " + "; ".join(result.missing)
        if result.missing and note not in self._record.notes:
            self._record.notes.append(note)

    def failure_behind(self, failure: CandidateRaised) -> CandidateFailure | None:
        """The failed build whose error ended the candidate, as a failure; None where no build did."""
        built = next((build for build in self._record.builds if build.key == failure.error.build_key), None)
        if built is None or built.status == "built":
            return None
        self._record.stage = "build"
        return CandidateFailure(built.status, built.message or failure.args[0])


def _imports(result: BuildResult) -> list[str] | None:
    """The C functions that a built object calls, of those that the checks know."""
    if result.path is None:
        return None
    names = imported_functions(Path(result.path))
    return sorted(C_FUNCTIONS & set(names)) if names else None  # an object without a symbol table hides them
