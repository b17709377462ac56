"""Builds extensions for candidates: cached, or split, or as PyTorch does it, and always with PyTorch's verdict.

    builder = Builder(cache_dir, "cuda", arch="9.0")
    builder.prepare()                     # once per machine: precompiled headers, support library
    result = builder.build(request)       # a BuildResult, whatever the candidate wrote
    module = load_extension(result.path, request.name)          # in the candidate's process (extension_loader.py)

Routes, cheapest first: the cache; `split` (slim headers, binding table); `split_pybind` (real pybind11);
`split_full_headers`; `stock` (PyTorch's own load_inline in a separate process). A cheaper route is left with a recorded
reason, and its failure is the verdict only where stock's is certain (final_refusal.py). With `audit_share`, a random share
of the results is compared with the stock build (stock_comparison.py).

Nothing of the candidate runs here: compilers run in a jail with the toolchain and a folder of their own (compiler.py);
harmful flags are refused (harmful_flags.py).
"""

from __future__ import annotations

import errno
import hashlib
import random
import re
import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError

from dice.errors import DiceError, HarnessError
from dice.kernels.builder import cpu_toolchain
from dice.kernels.builder.artefacts import NotPrepared, PrepareReport
from dice.kernels.builder.cache import BuildCache
from dice.kernels.builder.compiler import Meter, ToolJail, ToolLimits, Workbench
from dice.kernels.builder.cpu_route import CpuBuild
from dice.kernels.builder.flags import refusal
from dice.kernels.builder.headers import CSRC, files_digest
from dice.kernels.builder.outcome import Built, Declined, FinalRefusal, OutOfLimits
from dice.kernels.builder.precompiled import Precompiled
from dice.kernels.builder.resource_usage import Multiprocessor, kernel_uses
from dice.kernels.builder.split_build import SplitBuild
from dice.kernels.builder.stock import build_stock
from dice.kernels.builder.stock_comparison import Audit, compare_with_stock
from dice.kernels.builder.toolchain import Toolchain
from dice.kernels.records.explanation import KernelUse
from dice.kernels.records.extension import BuildResult, BuildStatus, ExtensionRequest
from dice.kernels.records.verdict import Backend
from dice.kernels.sandbox.fork_server import ForkServer
from dice.kernels.source.lexer import SplitRefused

_MESSAGE_CHARACTERS = 8000
_OBJECT_GIB = 1.0
"""Of any file that a build makes: an object is copied into memory to be handed over."""
_UNREADABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    ELFError,
)
_IN_THE_WAY = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY)
_NAME_MATTERS = re.compile(
    r"TORCH_EXTENSION_NAME(?!\s*,\s*\w+\s*\))|TORCH_LIBRARY|PYBIND11_MODULE\s*\(\s*(?!TORCH_EXTENSION_NAME)"
)


@dataclass(frozen=True)
class _Job:
    """One build in progress."""

    request: ExtensionRequest
    key: str
    module: str
    bench: Workbench


class Builder:
    """Builds for one backend. Safe for many processes on one cache folder; one instance is for one thread.

    arch: compute capability such as "9.0"; None takes that of the visible GPUs.
    timeout_s: wall time for one build, all routes together.
    audit_share: share of the builds (0 to 1) that stock builds too; disagreements are in `audit`.
    stock_fallback: False turns "left to stock" into compile_error, for measurements of the fast routes alone.
    compilers: a fork server of compilers that other processes use too; None starts one when it is needed.
    """

    def __init__(
        self,
        cache_dir: str | Path,
        backend: Backend,
        *,
        arch: str | None = None,
        timeout_s: float = 300.0,
        max_cache_gib: float = 20.0,
        audit_share: float = 0.0,
        stock_fallback: bool = True,
        compilers: ForkServer | None = None,
    ) -> None:
        if backend not in ("cuda", "cpu"):
            raise DiceError(f"backend '{backend}': expected cuda or cpu.")
        if not 0.0 <= audit_share <= 1.0:
            raise DiceError(f"audit share {audit_share}: expected a number from 0 to 1.")
        self.folder = Path(cache_dir).expanduser().resolve()
        self.backend: Backend = backend
        self.timeout_s = timeout_s
        self.stock_fallback = stock_fallback
        self.cache = BuildCache(self.folder, max_cache_gib)
        self.toolchain = Toolchain.find(backend, arch if backend == "cuda" else None, self.folder)
        made = self.folder / "toolchains" / self.toolchain.fingerprint
        self.jail = ToolJail(compilers)
        self.precompiled = Precompiled(self.toolchain, made, self.jail)
        shared = self.precompiled.host_folder
        for folder in (made, shared):
            folder.mkdir(parents=True, exist_ok=True)
        self.jail.show([*self.toolchain.folders(), made, shared, CSRC])
        self.audit = Audit(share=audit_share)
        self._random = random.Random()
        self._code = _own_code(backend)

    def prepare(self, jobs: int | None = None, *, everything: bool = False) -> PrepareReport:
        """Make what every build needs, once per machine, `jobs` at a time; with `everything`, what few need too.

        Routes that this machine cannot serve are reported.
        """
        report = self.precompiled.prepare(jobs, everything=everything)
        if self.backend == "cpu":
            try:
                cpu_toolchain.prepare(self.precompiled, everything=everything)
            except NotPrepared as failure:
                report.failures["cpu"] = str(failure)
        return report

    def visible_folders(self) -> list[Path]:
        """Folders that a candidate's sandbox must let it read, so that extensions can be loaded."""
        folders = [self.precompiled.support_library().parent]
        if self.backend == "cpu":
            folders.append(cpu_toolchain.runtime_library(self.precompiled).parent)
        return folders

    def kernel_uses(self, result: BuildResult, processor: Multiprocessor) -> list[KernelUse]:
        """What the kernels of a built object use of a GPU; none where the toolkit has no cuobjdump, or it fails."""
        cuobjdump = self.toolchain.cuda_home / "bin" / "cuobjdump"
        if result.path is None or not cuobjdump.exists():
            return []
        with tempfile.TemporaryDirectory(dir=self.jail.folder) as folder:
            shutil.copyfile(result.path, Path(folder, "object.so"))
            bench = Workbench(Path(folder), Meter(self.jail), ToolLimits(60.0), time.monotonic() + 60.0)
            try:
                return kernel_uses(bench, Path("object.so"), str(cuobjdump), processor)
            except (SplitRefused, OutOfLimits):
                return []

    def key(self, request: ExtensionRequest) -> str:
        """The cache key: the request, the toolchain, and our own code."""
        parts = [request.digest(), self.toolchain.fingerprint, self._code]
        digest = hashlib.sha256(" ".join(parts).encode())
        if _name_matters(request):
            digest.update(request.name.encode())
        return digest.hexdigest()[:40]

    def known(self, request: ExtensionRequest) -> BuildResult | None:
        """The result that no compiler is needed for: a refusal, or that of an earlier build; None where there is none."""
        started, key, refused = time.monotonic(), self.key(request), refusal(request)
        if refused is not None:
            return BuildResult(status=refused[0], key=key, route="refused", message=refused[1])
        return self._kept(key, started)

    def build(self, request: ExtensionRequest) -> BuildResult:
        """Build an extension. A candidate's fault is a BuildResult; HarnessError means that this machine is broken."""
        started = time.monotonic()
        result = self.known(request)
        if result is not None:
            return result
        key = self.key(request)
        with self.cache.building(key, timeout_s=2 * self.timeout_s + 60.0):
            return self._kept(key, started) or self._build(request, key, started)

    def _kept(self, key: str, started: float) -> BuildResult | None:
        result = self.cache.get(key)
        return None if result is None else result.model_copy(update={"seconds": time.monotonic() - started})

    def _build(self, request: ExtensionRequest, key: str, started: float) -> BuildResult:
        work = Path(tempfile.mkdtemp(prefix="build-", dir=self.jail.folder))
        module = request.name if _name_matters(request) else f"dice_{key[:16]}"
        job = _Job(request, key, module, self._bench(work, started + self.timeout_s))
        try:
            waited_s = self.precompiled.waited_s
            result, built = self._routes(job)
            if result.status == "timeout" and self.precompiled.waited_s > waited_s:
                # The time went into a header that is made once per machine.
                (work / "again").mkdir()
                job = replace(job, bench=self._bench(work / "again", time.monotonic() + self.timeout_s))
                result, built = self._routes(job)
            result.seconds = time.monotonic() - started
            result.cpu_seconds = job.bench.meter.cpu_seconds
            result.isolation, result.missing = self.jail.isolation, self.jail.missing
            if self.audit.share and self._random.random() < self.audit.share:
                self._compare(job, result, built)
            if result.status in ("built", "compile_error", "unsupported_on_cpu"):
                facts = self._facts(built.facts) if built is not None else {}
                result = self.cache.put(key, result, built.path if built is not None else None, facts)
            return result
        except OSError as error:
            if error.errno in _IN_THE_WAY:
                message = f"a file of the extension is in the way of the build's own ({error.strerror})"
                return BuildResult(status="compile_error", key=key, route="refused", message=message)
            raise HarnessError(f"building in {work} failed ({error}).") from error
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _bench(self, folder: Path, deadline: float) -> Workbench:
        return Workbench(folder, Meter(self.jail), ToolLimits(self.timeout_s, file_gib=_OBJECT_GIB), deadline)

    def _routes(self, job: _Job) -> tuple[BuildResult, Built | None]:
        """Try the routes in order. Raises HarnessError where not even the stock route can work on this machine."""
        fallbacks: list[str] = []
        route = "cpu" if self.backend == "cpu" else "split"
        try:
            try:
                built = self._read_and_build(job)
            except Declined as declined:
                fallbacks = [*declined.fallbacks, declined.reason]
                if not self.stock_fallback or self.backend == "cpu":
                    status: BuildStatus = "unsupported_on_cpu" if self.backend == "cpu" else "compile_error"
                    return self._failed(job, route, status, declined.reason, fallbacks), None
                route = "stock"
                built = self._stock(job, replace(job.bench, folder=job.bench.folder / "stock"))
        except FinalRefusal as failure:
            return self._failed(job, route, "compile_error", failure.message, fallbacks), None
        except OutOfLimits as failure:
            return self._failed(job, route, failure.status, failure.message, fallbacks), None
        except NotPrepared as failure:
            raise HarnessError(f"this machine cannot compile what every build needs ({failure}).") from failure
        result = BuildResult(
            status="built",
            key=job.key,
            route=built.route,
            path=str(built.path),
            fallbacks=[*fallbacks, *built.fallbacks],
            launches=built.launches,
        )
        return result, built

    def _read_and_build(self, job: _Job) -> Built:
        """The fast build. A text on which our own reading of C++ or ELF breaks is left to the compilers, as any it does not
        take."""
        name, route = ("unsupported_on_cpu", CpuBuild) if self.backend == "cpu" else ("split", SplitBuild)
        try:
            return route(job.request, job.module, self.precompiled, job.bench).run()
        except NotPrepared as failure:
            raise Declined(f"{name}: this machine ({failure})") from failure
        except _UNREADABLE as error:
            reason = f"{name}: the source cannot be read ({type(error).__name__}: {str(error)[:100]})"
            raise Declined(reason) from error

    def _stock(self, job: _Job, bench: Workbench) -> Built:
        """The stock build. Raises FinalRefusal, OutOfLimits, NotPrepared."""
        counting = self.precompiled if self.backend == "cuda" else None
        return build_stock(job.request, job.module, self.toolchain, bench, counting)

    def _compare(self, job: _Job, result: BuildResult, built: Built | None) -> None:
        """Build by stock as well, beside the clock of the candidate's build, and record whether the two agree."""
        if result.route == "stock" or result.status not in ("built", "compile_error"):
            return
        bench = self._bench(job.bench.folder / "audit", time.monotonic() + 2 * self.timeout_s)
        try:
            other: Built | None = self._stock(job, bench)
        except FinalRefusal:
            other = None
        except (OutOfLimits, NotPrepared):
            return
        self.audit.add(compare_with_stock(job.key, result, built, other))

    @staticmethod
    def _failed(job: _Job, route: str, status: BuildStatus, message: str, fallbacks: list[str]) -> BuildResult:
        return BuildResult(
            status=status, key=job.key, route=route, fallbacks=fallbacks, message=message[:_MESSAGE_CHARACTERS]
        )

    def _facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        """What the loader needs: the module's name in the object, its kind, the libraries to load first."""
        return {**facts, "libraries": [str(self.precompiled.support_library()), *facts.get("libraries", [])]}


def _name_matters(request: ExtensionRequest) -> bool:
    """Whether the object depends on the extension's name in ways that the loader cannot set."""
    texts = [*request.cpp_sources, *request.cuda_sources, *(file.text for file in (*request.files, *request.headers))]
    return not request.name.isidentifier() or any(_NAME_MATTERS.search(text) for text in texts)


def _own_code(backend: Backend) -> str:
    """Digest of our own code that decides what an object contains."""
    digest = hashlib.sha256(files_digest(CSRC / "extension").encode())
    folders = ["builder", "source"]
    if backend == "cpu":
        folders.append("cpu")
        digest.update(" ".join([files_digest(CSRC / "cpu"), *cpu_toolchain.machine_flags()]).encode())
    for folder in folders:
        for path in sorted(Path(__file__).parents[1].joinpath(folder).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
