"""The stock build: PyTorch's own `load_inline` or `load`, in a process and a folder of its own, without the import.

As a program (`python -m dice.kernels.builder.stock REQUEST.json OUT.json`) it runs PyTorch's function on the request in the
current folder and reports how it ended. Importing the result is left out: it would run candidate code in the builder.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from dice.errors import HarnessError
from dice.kernels.builder.compiler import Meter, ToolLimits, run_tool
from dice.kernels.builder.launch_symbols import uncounted_launches
from dice.kernels.builder.outcome import Built, Certain, OutOfLimits
from dice.kernels.builder.precompiled import Precompiled, wrap_flags
from dice.kernels.builder.toolchain import Toolchain
from dice.kernels.records.extension import ExtensionRequest, LaunchCount

# How torch's message begins when ninja or a compiler is missing: never the candidate's fault.
_HOST_FAULTS = ("Ninja is required", "CUDA_HOME environment variable is not set", "Unknown CUDA arch")


def build_stock(
    request: ExtensionRequest,
    module: str,
    toolchain: Toolchain,
    work: Path,
    meter: Meter,
    limits: ToolLimits,
    deadline: float,
    precompiled: Precompiled | None,
) -> Built:
    """Build `request` as PyTorch does, in `work`; the module is named `module`.

    With `precompiled`, the objects are linked once more with the launch counter. Raises Certain with PyTorch's message
    when the build fails, OutOfLimits, or HarnessError when PyTorch cannot build here at all.
    """
    work.mkdir(parents=True, exist_ok=True)
    scratch = work / "sources"
    for file in (*request.files, *request.headers):
        path = scratch / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
    (work / "request.json").write_text(request.model_copy(update={"name": module}).model_dump_json())
    environment = dict(os.environ) | {"MAX_JOBS": "2", "TORCH_EXTENSIONS_DIR": str(work / "extensions")}
    if toolchain.backend == "cuda":
        environment |= {"CUDA_HOME": str(toolchain.cuda_home), "TORCH_CUDA_ARCH_LIST": toolchain.arch_list}
    command = [sys.executable, "-m", "dice.kernels.builder.stock", "request.json", "result.json"]
    timeout_s = min(limits.timeout_s, max(0.0, deadline - time.monotonic()))
    # PyTorch's import needs much address space; its own CPU time is not the compilers'.
    done = run_tool(command, work, ToolLimits(timeout_s, 96.0, limits.file_gib), env=environment)
    if done.timed_out:
        meter.cpu_seconds += done.cpu_seconds
        raise OutOfLimits("timeout", f"the build took longer than {limits.timeout_s:.0f} s")
    if not (work / "result.json").exists():
        raise HarnessError(f"the stock build died: {done.output.strip()[-300:] or 'no message'}")
    result = json.loads((work / "result.json").read_text())
    meter.cpu_seconds += result["cpu_seconds"]
    if result["error"] is not None:
        message = result["error"]
        if message.startswith(_HOST_FAULTS):
            raise HarnessError(f"PyTorch cannot build extensions here: {message[:200]}")
        if "Killed signal terminated program" in message:
            raise HarnessError("a compiler of the stock build was killed from outside, probably for memory.")
        raise Certain(strip_prefix(message), "stock")
    path = Path(result["path"])
    if not path.exists():
        raise HarnessError("the stock build reported success but left no shared object.")
    counted = _relink(path, toolchain, work, meter, limits, deadline, precompiled) if precompiled else None
    launches: LaunchCount = "counted" if counted is not None else "unknown"
    if not list(path.parent.glob("*.cuda.o")):
        launches = uncounted_launches(path)
    return Built(counted or path, "stock", launches=launches, facts={"module": module, "table": False})


def strip_prefix(message: str) -> str:
    """PyTorch's message without "Error building extension 'name': ", which depends on the name."""
    return re.sub(r"^Error building extension '[^']*':?\s*", "", message)


def _relink(
    path: Path,
    toolchain: Toolchain,
    work: Path,
    meter: Meter,
    limits: ToolLimits,
    deadline: float,
    precompiled: Precompiled,
) -> Path | None:
    """The same objects linked once more, with the launch counter; None when there is no device code or it fails."""
    folder = path.parent
    variables = dict(re.findall(r"^(cxx|ldflags) = (.*)$", (folder / "build.ninja").read_text(), re.MULTILINE))
    objects = sorted(folder.glob("*.o"))
    if not any(name.name.endswith(".cuda.o") for name in objects):
        return None
    out = work / "counted.so"
    flags = shlex.split(variables["ldflags"])
    command = [*shlex.split(variables["cxx"]), *objects, precompiled.launch_object(), *wrap_flags(), *flags, "-o", out]
    done = meter.run(command, work, limits, deadline=deadline)
    return out if done.ok else None


def _main(request_file: str, result_file: str) -> None:
    import torch.utils.cpp_extension as extension

    request = ExtensionRequest.model_validate_json(Path(request_file).read_text())
    loaded: list[str] = []

    def keep(name: str, folder: str, *_: Any) -> None:
        loaded.append(os.path.join(folder, f"{name}.so"))

    patched: Any = extension
    patched._import_module_from_library = keep
    patched.remove_extension_h_precompiler_headers = lambda: None
    if request.kind == "load_inline" and patched.CUDA_HOME is None and os.environ.get("CUDA_HOME"):
        patched.CUDA_HOME = os.environ["CUDA_HOME"]
    error = None
    try:
        _call(extension, request)
    except (RuntimeError, ValueError, OSError, AssertionError, TypeError) as failure:
        error = str(failure)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = {"error": error, "path": loaded[-1] if loaded else None, "cpu_seconds": usage.ru_utime + usage.ru_stime}
    Path(result_file).write_text(json.dumps(result))


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
