"""The stock build: PyTorch's own `load_inline` or `load`, in a separate folder, without the import of the result.

As a program (`python -m dice.kernels.builder.stock REQUEST.json OUT.json`) it has PyTorch's function write its sources and
its ninja file into the current folder, and reports the folder or how PyTorch refused. That reads nothing but the request.
`ninja` and the compilers, which do, then run in the jail. Importing the result is left out: it would run candidate code
in the builder.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from dice.errors import HarnessError
from dice.kernels.builder.compiler import Workbench
from dice.kernels.builder.launch_symbols import uncounted_launches
from dice.kernels.builder.outcome import Built, FinalRefusal
from dice.kernels.builder.precompiled import Precompiled, wrap_flags, write_files
from dice.kernels.builder.toolchain import Toolchain
from dice.kernels.builder.toolchain_probe import without_building
from dice.kernels.records.extension import ExtensionRequest, LaunchCount

_PLAN_TIMEOUT_S = 300.0
# How torch's message begins when ninja or a compiler is missing: never the candidate's fault.
_HOST_FAULTS = ("Ninja is required", "CUDA_HOME environment variable is not set", "Unknown CUDA arch")


def build_stock(
    request: ExtensionRequest,
    module: str,
    toolchain: Toolchain,
    bench: Workbench,
    precompiled: Precompiled | None,
) -> Built:
    """Build `request` as PyTorch does, in the folder of `bench`; the module is named `module`.

    With `precompiled`, objects with device code are linked once more with the launch counter. Raises FinalRefusal with
    PyTorch's message when the build fails, OutOfLimits, or HarnessError when PyTorch cannot build here at all.
    """
    bench.folder.mkdir(parents=True, exist_ok=True)
    write_files(bench.folder / "sources", ((file.name, file.text) for file in (*request.files, *request.headers)))
    plan = _planned(request.model_copy(update={"name": module}), toolchain, bench.folder)
    if plan["error"] is not None:
        if plan["error"].startswith(_HOST_FAULTS):
            raise HarnessError(f"PyTorch cannot build extensions here: {plan['error'][:200]}")
        raise FinalRefusal(strip_prefix(plan["error"]), "stock")
    path = Path(plan["path"])
    done = bench.run(["ninja", "-C", path.parent, "-v", "-j", "2"])
    if not done.ok:
        raise FinalRefusal(re.sub(r"^ninja: Entering directory .*\n", "", done.output), "stock")
    if not path.exists():
        raise HarnessError("the stock build reported success but left no shared object.")
    launches: LaunchCount
    if not list(path.parent.glob("*.cuda.o")):
        launches = uncounted_launches(path)
    elif precompiled is not None and (counted := _relinked(path, bench, precompiled)) is not None:
        path, launches = counted, "counted"
    else:
        launches = "unknown"
    return Built(path, "stock", launches=launches, facts={"module": module, "table": False})


def _planned(request: ExtensionRequest, toolchain: Toolchain, work: Path) -> dict[str, Any]:
    """PyTorch's sources and ninja file in `work/build`: `path` of the object to be, or `error`. Raises HarnessError."""
    (work / "request.json").write_text(request.model_dump_json(), encoding="utf-8")
    environment = dict(os.environ) | {"TORCH_EXTENSIONS_DIR": str(work / "extensions")}
    if toolchain.backend == "cuda":
        environment |= {"CUDA_HOME": str(toolchain.cuda_home), "TORCH_CUDA_ARCH_LIST": toolchain.arch_list}
    command = [sys.executable, "-m", "dice.kernels.builder.stock", "request.json", "plan.json"]
    try:
        done = subprocess.run(
            command, cwd=work, env=environment, capture_output=True, timeout=_PLAN_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"PyTorch does not write its ninja file ({error}).") from error
    if not (work / "plan.json").exists():
        words = done.stderr.decode(errors="replace").strip()[-300:]
        raise HarnessError(f"PyTorch does not write its ninja file: {words or 'no message'}")
    return json.loads((work / "plan.json").read_text(encoding="utf-8"))


def strip_prefix(message: str) -> str:
    """PyTorch's message without "Error building extension 'name': ", which depends on the name."""
    return re.sub(r"^Error building extension '[^']*':?\s*", "", message)


def _relinked(path: Path, bench: Workbench, precompiled: Precompiled) -> Path | None:
    """The same objects linked once more, with the launch counter; None when that fails."""
    folder = path.parent
    variables = dict(
        re.findall(r"^(cxx|ldflags) = (.*)$", (folder / "build.ninja").read_text(encoding="utf-8"), re.MULTILINE)
    )
    objects = sorted(folder.glob("*.o"))
    out = bench.folder / "counted.so"
    flags = shlex.split(variables["ldflags"])
    command = [*shlex.split(variables["cxx"]), *objects, precompiled.launch_object(), *wrap_flags(), *flags, "-o", out]
    return out if bench.run(command).ok else None


def _main(request_file: str, plan_file: str) -> None:
    request = ExtensionRequest.model_validate_json(Path(request_file).read_text(encoding="utf-8"))
    loaded: list[str] = []

    def keep(name: str, folder: str, *_: Any) -> None:
        loaded.append(os.path.join(folder, f"{name}.so"))

    patched = without_building(keep)
    if request.kind == "load_inline" and patched.CUDA_HOME is None and os.environ.get("CUDA_HOME"):
        patched.CUDA_HOME = os.environ["CUDA_HOME"]
    error = None
    try:
        _call(patched, request)
    except (RuntimeError, ValueError, OSError, AssertionError, TypeError) as failure:
        error = str(failure)
    plan = {"error": error, "path": loaded[-1] if loaded else None}
    Path(plan_file).write_text(json.dumps(plan), encoding="utf-8")


def _call(extension: Any, request: ExtensionRequest) -> None:
    flags = {
        "extra_cflags": list(request.extra_cflags) or None,
        "extra_cuda_cflags": list(request.extra_cuda_cflags) or None,
        "extra_ldflags": list(request.extra_ldflags) or None,
        "extra_include_paths": [_resolved(path) for path in request.extra_include_paths] or None,
        "with_cuda": request.with_cuda,
        "is_python_module": request.is_python_module,
        "verbose": False,
    }
    folder = Path("build").absolute()
    folder.mkdir()
    if request.kind == "load":
        sources = [str(Path("sources", file.name).absolute()) for file in request.files]
        extension.load(request.name, sources, build_directory=str(folder), **flags)
        return
    if request.no_implicit_headers:
        flags["no_implicit_headers"] = True
    extension.load_inline(
        request.name,
        list(request.cpp_sources),
        list(request.cuda_sources) or None,
        functions=None if request.functions is None else dict(request.functions),
        build_directory=str(folder),
        with_pytorch_error_handling=request.with_pytorch_error_handling,
        **flags,
    )


def _resolved(path: str) -> str:
    """An include folder: relative ones lie in the candidate's scratch folder."""
    return path if os.path.isabs(path) else str(Path("sources", path).absolute())


if __name__ == "__main__":
    _main(*sys.argv[1:3])
