"""Arguments of `torch.utils.cpp_extension.load_inline` and `load`, as an ExtensionRequest.

The signatures are PyTorch's (2.9 to 2.13), positional or by name. What PyTorch refuses before it builds is refused with
the same error, by doing what PyTorch does with the argument. Options that only concern how PyTorch works (verbose,
build_directory, keep_intermediates, use_pch) are taken and have no effect; SYCL is not supported.
"""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dice.kernels.records.extension import ExtensionRequest, SourceFile

_FILE_BYTES = 4 << 20
_MOST_FILES = 500
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_SYSTEM = ("/usr", "/opt", "/lib")


def load_inline(  # named as PyTorch's: the name is in the TypeErrors of a wrong call
    name: Any,
    cpp_sources: Any,
    cuda_sources: Any = None,
    sycl_sources: Any = None,
    functions: Any = None,
    extra_cflags: Any = None,
    extra_cuda_cflags: Any = None,
    extra_sycl_cflags: Any = None,
    extra_ldflags: Any = None,
    extra_include_paths: Any = None,
    build_directory: Any = None,
    verbose: Any = False,
    with_cuda: Any = None,
    with_sycl: Any = None,
    is_python_module: Any = True,
    with_pytorch_error_handling: Any = True,
    keep_intermediates: Any = True,
    use_pch: Any = False,
    no_implicit_headers: Any = False,
) -> ExtensionRequest:
    """The request of such a call. Raises TypeError, ValueError or AttributeError as PyTorch's does."""
    os.path.join("", name)
    _refuse_sycl(sycl_sources, with_sycl)
    cpp = _sources(cpp_sources)
    cuda = _sources(cuda_sources or [])
    pairs = None if functions is None else _functions(functions)
    return ExtensionRequest(
        kind="load_inline",
        name=str(name),
        cpp_sources=cpp,
        cuda_sources=cuda,
        functions=pairs,
        is_python_module=bool(is_python_module),
        with_pytorch_error_handling=bool(with_pytorch_error_handling),
        no_implicit_headers=bool(no_implicit_headers),
        extra_include_paths=tuple(os.path.abspath(path) for path in _flags(extra_include_paths)),
        **_options(with_cuda, extra_cflags, extra_cuda_cflags, extra_ldflags),
    )


def load(
    name: Any,
    sources: Any,
    extra_cflags: Any = None,
    extra_cuda_cflags: Any = None,
    extra_sycl_cflags: Any = None,
    extra_ldflags: Any = None,
    extra_include_paths: Any = None,
    build_directory: Any = None,
    verbose: Any = False,
    with_cuda: Any = None,
    with_sycl: Any = None,
    is_python_module: Any = True,
    is_standalone: Any = False,
    keep_intermediates: Any = True,
) -> ExtensionRequest:
    """The request of such a call, with the text of its sources and of the files below their folder that they include.

    Names become relative to the folder that holds them all. Raises OSError for a missing source, and what PyTorch's raises.
    """
    os.path.join("", name)
    _refuse_sycl(None, with_sycl)
    if is_python_module and is_standalone:
        raise ValueError("`is_python_module` and `is_standalone` are mutually exclusive.")
    paths = [os.path.abspath(source) for source in ([sources] if isinstance(sources, str) else sources)]
    folders = [os.path.abspath(path) for path in _flags(extra_include_paths)]
    own_folders = [folder for folder in folders if not _is_system(folder)]
    root = os.path.commonpath([*(os.path.dirname(path) for path in paths), *own_folders])
    texts = {path: _read(path) for path in paths}
    headers = _included(texts, own_folders, root)
    return ExtensionRequest(
        kind="load",
        name=str(name),
        files=tuple(SourceFile(name=os.path.relpath(path, root), text=text) for path, text in texts.items()),
        headers=tuple(SourceFile(name=os.path.relpath(path, root), text=text) for path, text in headers.items()),
        is_python_module=bool(is_python_module),
        is_standalone=bool(is_standalone),
        extra_include_paths=tuple(os.path.relpath(f, root) if f in own_folders else f for f in folders),
        **_options(with_cuda, extra_cflags, extra_cuda_cflags, extra_ldflags),
    )


def _sources(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    value.insert  # noqa: B018  # PyTorch inserts its headers: a tuple or None raises AttributeError
    "\n".join(value)
    return tuple(value)


def _functions(functions: Any) -> tuple[tuple[str, str], ...]:
    if isinstance(functions, str):
        functions = [functions]
    if isinstance(functions, list):
        functions = {function: function for function in functions}
    elif not isinstance(functions, dict):
        raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(functions)}")
    return tuple((f"{name}", f"{doc}") for name, doc in functions.items())


def _flags(value: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(flag.strip() for flag in value or [])


def _options(with_cuda: Any, cflags: Any, cuda_cflags: Any, ldflags: Any) -> dict[str, Any]:
    if ldflags:
        ldflags.append  # noqa: B018  # PyTorch appends its libraries: a tuple or a string raises AttributeError
    return {
        "with_cuda": None if with_cuda is None else bool(with_cuda),
        "extra_cflags": _flags(cflags),
        "extra_cuda_cflags": _flags(cuda_cflags),
        "extra_ldflags": _flags(ldflags),
    }


def _refuse_sycl(sources: Any, with_sycl: Any) -> None:
    if sources or with_sycl:
        raise RuntimeError("SYCL extensions cannot be built here")


def _is_system(folder: str) -> bool:
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), sysconfig.get_path("include")}
    return any(folder == top or folder.startswith(f"{top}/") for top in (*_SYSTEM, *packages))


def _read(path: str) -> str:
    text = Path(path).read_text(encoding="utf-8")
    if len(text) > _FILE_BYTES:
        raise RuntimeError(f"{path}: larger than {_FILE_BYTES >> 20} MiB")
    return text


def _included(texts: dict[str, str], folders: Sequence[str], root: str) -> dict[str, str]:
    """Files under `root` that the sources include, directly or not: path -> text."""
    found: dict[str, str] = {}
    pending = list(texts.items())
    while pending:
        path, text = pending.pop()
        for name in _INCLUDE.findall(text):
            for folder in (os.path.dirname(path), *folders):
                target = os.path.normpath(os.path.join(folder, name))
                inside = target.startswith(f"{root.rstrip('/')}/")
                if inside and target not in found and target not in texts and os.path.isfile(target):
                    if len(found) >= _MOST_FILES:
                        raise RuntimeError(f"more than {_MOST_FILES} included files")
                    found[target] = _read(target)
                    pending.append((target, found[target]))
                    break
    return found
