"""The compilers, PyTorch's own flags for them, and a fingerprint of it all.

    toolchain = Toolchain.find("cuda", arch="9.0", cache_dir=Path(...))   # "cpu": only g++ is needed
    toolchain.cxx, toolchain.cxx_flags("cuda")      # what stock gives g++ for main.cpp (without -DTORCH_EXTENSION_NAME)
    toolchain.nvcc, toolchain.nvcc_flags            # what stock gives nvcc, without the architecture
    toolchain.link_flags("cuda")                    # what stock gives the linker
    toolchain.fingerprint                           # changes with any compiler, header or flag: part of every cache key

Flags are not imitated: PyTorch is asked for the ninja file that it would write (toolchain_probe.py), once per machine.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from dice.errors import DiceError, HarnessError
from dice.jsonl import atomic_writer
from dice.kernels.builder.toolchain_probe import EXTENSION_NAME, find_cuda_home
from dice.kernels.records.verdict import Backend

SEARCH_PATHS = ("LD_LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH")
"""Environment variables that name folders in which compilers and linkers look."""
_ARCHITECTURES = ("-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code", "--gpu-code")
_ENVIRONMENT = ("CUDA_HOME", "CUDA_PATH", "CXX", "CC", "PYTORCH_NVCC", "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH")


@dataclass(frozen=True)
class Toolchain:
    """Compilers and flags for one backend. Immutable; make it with `Toolchain.find`."""

    backend: Backend
    arches: tuple[str, ...]
    """Compute capabilities to build for, e.g. ("9.0",); empty for the CPU back end."""
    facts: dict[str, Any]
    """What `toolchain_probe.probe` said."""
    versions: dict[str, str]
    """Compiler -> its version text."""

    @classmethod
    def find(cls, backend: Backend, arch: str | None, cache_dir: Path) -> Toolchain:
        """Find the compilers. `arch=None` builds for the visible GPUs.

        Raises HarnessError when there is no C++ compiler, no PyTorch or (backend cuda) no nvcc or GPU, DiceError for a
        malformed `arch`.
        """
        cxx = os.environ.get("CXX", "c++")
        if shutil.which(cxx) is None:
            raise HarnessError(f"no C++ compiler: '{cxx}' is not on the PATH; install g++ or set CXX.")
        versions = {"cxx": _version(cxx)}
        arches: tuple[str, ...] = ()
        if backend == "cuda":
            home = find_cuda_home()
            if home is None or not (Path(home) / "bin" / "nvcc").exists():
                raise HarnessError("no nvcc: put it on the PATH or set CUDA_HOME, or use the CPU back end.")
            versions["nvcc"] = _version(f"{home}/bin/nvcc")
            arches = _arches(arch)
        facts = _probed(backend, versions, cache_dir)
        return cls(backend, arches, facts, versions)

    @property
    def cxx(self) -> str:
        """The C++ compiler that PyTorch would call."""
        return self.facts["cpp"]["cxx"]

    @property
    def nvcc(self) -> str:
        """nvcc, absolute."""
        return self.facts["cuda"]["nvcc"]

    @property
    def cuda_home(self) -> Path:
        """Root of the CUDA toolkit."""
        return Path(self.facts["cuda_home"])

    @property
    def torch_root(self) -> Path:
        """Folder of the torch package."""
        return Path(self.facts["torch_root"])

    def cxx_flags(self, kind: Literal["cpp", "cuda"]) -> list[str]:
        """Flags of stock's g++ command for main.cpp; `cuda`: when the extension has CUDA sources too."""
        return [flag for flag in shlex.split(self.facts[kind]["cflags"]) if EXTENSION_NAME not in flag]

    @cached_property
    def nvcc_flags(self) -> list[str]:
        """Flags of stock's nvcc command, without architecture and -std."""
        flags = shlex.split(self.facts["cuda"]["cuda_cflags"])
        return [f for f in flags if EXTENSION_NAME not in f and not f.startswith(("-std=", *_ARCHITECTURES))]

    @cached_property
    def half_macros(self) -> list[str]:
        """Macros that PyTorch gives nvcc for host and device: `__CUDA_NO_HALF_OPERATORS__` and the like."""
        return [f.removeprefix("-D") for f in self.nvcc_flags if f.startswith("-D__CUDA_NO_")]

    @cached_property
    def standard(self) -> str:
        """`-std=c++17` or what this PyTorch asks for."""
        return next(flag for flag in self.cxx_flags("cpp") if flag.startswith("-std="))

    def link_flags(self, kind: Literal["cpp", "cuda"]) -> list[str]:
        """Flags of stock's link command, `-shared` first; libraries that this PyTorch does not have are left out."""
        flags = shlex.split(self.facts[kind]["ldflags"])
        libraries = self.torch_root / "lib"
        missing = {name for name in ("c10_cuda", "torch_cuda") if not (libraries / f"lib{name}.so").exists()}
        return [flag for flag in flags if flag.removeprefix("-l") not in missing]

    @property
    def include_flags(self) -> list[str]:
        """-isystem flags of PyTorch, the CUDA toolkit (backend cuda) and Python, in stock's order."""
        flags = self.cxx_flags("cuda" if self.backend == "cuda" else "cpp")
        pairs = itertools.pairwise(flags)
        return [word for flag, folder in pairs if flag == "-isystem" for word in (flag, folder)]

    @property
    def arch_list(self) -> str:
        """Value for TORCH_CUDA_ARCH_LIST that makes stock build for the same GPUs as it would by itself."""
        return ";".join((*self.arches[:-1], f"{self.arches[-1]}+PTX")) if self.arches else ""

    def folders(self) -> list[Path]:
        """Folders and files that compilers, linker and ninja need to read."""
        found = [self.torch_root, self.torch_root.parent / "nvidia", Path(sysconfig.get_path("include"))]
        found += [Path(folder) for folder in self.include_flags[1::2]]
        programs = [self.cxx, "ninja", *([self.nvcc] if self.backend == "cuda" else [])]
        found += [Path(place) for program in programs if (place := shutil.which(program))]
        if self.backend == "cuda":
            found.append(self.cuda_home)
        for name in SEARCH_PATHS:
            found += [Path(folder) for folder in os.environ.get(name, "").split(":") if folder]
        found += [Path(folder) for folder in _search_folders(self.cxx)]
        return sorted({path.absolute() for path in found if path.exists()})

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest of what comes from outside: compilers, PyTorch, Python, flags. Our own files have their own keys."""
        return _digest([self.backend, self.arches, self.facts, self.versions])

    @cached_property
    def host_fingerprint(self) -> str:
        """The same of g++, PyTorch and Python alone: both back ends share what has no other source."""
        facts = {name: fact for name, fact in self.facts.items() if name not in ("cuda", "cuda_home")}
        return _digest([facts, self.versions["cxx"]])


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]


def _search_folders(cxx: str) -> list[str]:
    """Where a C++ compiler looks for its own programs, libraries and headers."""
    searched = subprocess.run([cxx, "-print-search-dirs"], capture_output=True, text=True, timeout=60, check=False)
    listed = [line.partition("=")[2].split(":") for line in searched.stdout.splitlines() if "=" in line]
    command = [cxx, "-v", "-E", "-x", "c++", "/dev/null"]
    spoken = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stderr
    headers = [line.strip() for line in spoken.splitlines() if line.startswith(" /")]
    return [folder for folder in [*itertools.chain(*listed), *headers] if os.path.isdir(folder) and folder != "/"]


def _version(program: str) -> str:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise HarnessError(f"{program} --version failed ({error}).") from error
    return done.stdout.strip()


def _arches(arch: str | None) -> tuple[str, ...]:
    if arch is not None:
        number = arch.removesuffix("a")
        if number.count(".") != 1 or not number.replace(".", "").isdigit():
            raise DiceError(f"arch '{arch}': expected a compute capability such as 9.0.")
        return (arch,)
    done = _ask_pytorch("capabilities")
    found = json.loads(done.stdout) if done.returncode == 0 else []
    if not found:
        raise HarnessError("no NVIDIA GPU is visible; name the compute capability to build for (arch, e.g. 9.0).")
    return tuple(found)


def _ask_pytorch(question: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dice.kernels.builder.toolchain_probe", question]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def _probed(backend: Backend, versions: dict[str, str], cache_dir: Path) -> dict[str, Any]:
    """The probe's answer, from the cache folder when PyTorch and the environment are still the same."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise HarnessError("PyTorch is not installed in this Python.")
    version_file = Path(spec.origin).with_name("version.py")
    status = version_file.stat()
    key_parts = [backend, versions, sys.executable, sys.version, str(version_file), status.st_mtime_ns, status.st_size]
    key_parts.append({name: os.environ.get(name) for name in _ENVIRONMENT})
    key = hashlib.sha256(json.dumps(key_parts).encode()).hexdigest()[:20]
    path = cache_dir / "probes" / f"{key}.json"
    if path.exists():
        return json.loads(path.read_text())
    done = _ask_pytorch(backend)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise HarnessError(f"PyTorch could not say how it builds extensions ({last[0]}).")
    facts = json.loads(done.stdout.splitlines()[-1])
    with atomic_writer(path) as stream:
        json.dump(facts, stream)
    return facts
