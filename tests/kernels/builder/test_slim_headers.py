"""Slim headers: made from the installed PyTorch's, and refused where those have another shape."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from torch.utils.cpp_extension import include_paths

from dice.kernels.builder.slim_headers import SlimRefused, cuda_host_headers, slim_headers

TORCH = next(Path(path) for path in include_paths() if (Path(path) / "ATen" / "ATen.h").exists())
READ = (
    "torch/csrc/api/include/torch/types.h",
    "torch/csrc/autograd/generated/variable_factories.h",
    "ATen/ops/cat.h",
    "ATen/DeviceGuard.h",
)
HEAVY = re.compile(r"#include <(ATen/core/(ivalue|IListRef)|torch/library|torch/csrc/autograd/(variable|function))\.h>")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The headers that are read, to be changed."""
    for name in READ:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TORCH / name, tmp_path / name)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_every_file_that_they_include_is_there_and_none_is_heavy() -> None:
    files = slim_headers(TORCH).files
    for name, text in files.items():
        assert not HEAVY.search(text), name
        assert text.count("#pragma once") == 1, name
        for included in re.findall(r"#include <((?:ATen|torch|c10)/[^>]+)>", text):
            below = (TORCH / included, TORCH / "torch/csrc/api/include" / included)
            assert included in files or any(path.exists() for path in below), (name, included)
        in_torch = (TORCH / name, TORCH / "torch/csrc/api/include" / name)
        assert any(path.exists() for path in in_torch), f"{name} shadows nothing"


def test_every_factory_is_declared_once_and_defined_once() -> None:
    whole = (TORCH / READ[1]).read_text()
    slim = slim_headers(TORCH)
    declared = re.findall(r"^at::Tensor (\w+)\(.*\);$", slim.files[READ[1]], re.MULTILINE)
    wanted = re.findall(r"^inline at::Tensor (\w+)\((?![^{]*TensorDataContainer)", whole, re.MULTILINE)
    assert declared == wanted
    assert {"empty", "zeros", "full", "randn", "arange"} <= set(declared)
    assert re.findall(r"= &torch::(\w+);", slim.support) == wanted
    kept = re.findall(r"\(\*keep_(\d+)\)", slim.support)
    assert kept == [str(number) for number in range(len(wanted))]


def test_the_types_of_the_functions_that_are_kept() -> None:
    support = slim_headers(TORCH).support
    assert "(at::IntArrayRef, at::TensorOptions, ::std::optional<at::MemoryFormat>) = &torch::empty;" in support
    assert "const torch::Deleter&" in support
    assert " = {}" not in support


def test_cat_takes_a_list_of_tensors() -> None:
    slim = slim_headers(TORCH)
    cat = slim.files["ATen/ops/cat.h"]
    assert "ITensorListRef" not in cat
    assert re.search(r"^at::Tensor cat\(at::TensorList tensors, int64_t dim=0\);$", cat, re.MULTILINE)
    assert re.search(r"^at::Tensor cat\(at::TensorList tensors, int64_t dim\) \{$", slim.support, re.MULTILINE)


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        (READ[0], "#include <torch/library.h>", "#include <torch/other.h>", "types.h includes other headers"),
        (READ[0], "using namespace at;", "", "types.h includes other headers"),
        (READ[1], " empty(", " vacant(", "declares no torch::empty"),
        (READ[2], "ITensorListRef", "IOtherListRef", "ITensorListRef in an unknown way"),
        (READ[2], "}\n", "}\nvoid f(ITensorListRef);\n", "ITensorListRef in an unknown way"),
        (READ[3], "device_of(ITensorListRef t)", "device_of(ITensorListRef other)", "IListRef in an unknown way"),
        (READ[3], "#pragma once", "#pragma once\nusing A = IListRef<int>;", "IListRef in an unknown way"),
    ],
)
def test_another_shape_is_refused(folder: Path, file: str, old: str, new: str, reason: str) -> None:
    slim_headers(folder)
    change(folder / file, old, new)
    with pytest.raises(SlimRefused, match=reason):
        slim_headers(folder)


@pytest.mark.parametrize("name", READ)
def test_a_missing_header_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(SlimRefused, match=f"{name} cannot be read"):
        slim_headers(folder)


CUDA_RUNTIME = """\
#if defined(__CUDACC__)
device functions
#endif
#if defined __CUDACC__ && defined(other)
kept
#endif
#if defined(__CUDACC__)
cudaMemcpyToSymbol
#endif
#if defined __CUDACC__
launches
#endif
"""


def test_templates_of_the_cuda_runtime_wait_for_nothing(tmp_path: Path) -> None:
    cuda, torch = tmp_path / "cuda", tmp_path / "torch"
    (torch / "ATen" / "core").mkdir(parents=True)
    cuda.mkdir()
    (cuda / "cuda_runtime.h").write_text(CUDA_RUNTIME)
    (torch / "ATen/core/TensorAccessor.h").write_text("#if defined(__CUDACC__) || defined(__HIPCC__)\nx\n#endif\n")
    files = cuda_host_headers(cuda, torch)
    assert files == {
        "cuda_runtime.h": (
            "#if defined(__CUDACC__)\ndevice functions\n#endif\n#if defined __CUDACC__ && defined(other)\nkept\n#endif\n"
            "#if 1\ncudaMemcpyToSymbol\n#endif\n#if 1\nlaunches\n#endif\n"
        ),
        "ATen/core/TensorAccessor.h": "#if 1\nx\n#endif\n",
    }
    change(cuda / "cuda_runtime.h", "cudaMemcpyToSymbol", "moved")
    with pytest.raises(SlimRefused, match="not the expected shape"):
        cuda_host_headers(cuda, torch)
    (cuda / "cuda_runtime.h").write_text(CUDA_RUNTIME + "#if defined(__CUDACC__)\n#endif\n")
    with pytest.raises(SlimRefused, match="not the expected shape"):
        cuda_host_headers(cuda, torch)
