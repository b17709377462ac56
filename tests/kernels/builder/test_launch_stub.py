"""The launch stubs of objects for a GPU, driven without one: a runtime that only answers, our own object file, the loader."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dice.kernels.builder.precompiled import CSRC
from dice.kernels.builder.toolchain_probe import find_cuda_home
from dice.kernels.candidate import extension_loader
from dice.kernels.sandbox.launch_ledger import PAGE_BYTES, LaunchLedger
from dice.kernels.sandbox.linux import map_shared

RUNTIME = """
#include <cuda_runtime_api.h>
#define REGISTER void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*
#define LAUNCH const void* kernel, dim3, dim3, void**, size_t, cudaStream_t stream
extern "C" {
unsigned __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) { return 0; }
void** __cudaRegisterFatBinary(void*) { return nullptr; }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterFunction(REGISTER) {}
void __real___cudaRegisterFunction(REGISTER) {}
static int ran;
cudaError_t __real_cudaLaunchKernel(LAUNCH) { return ++ran, stream != nullptr ? cudaErrorInvalidValue : cudaSuccess; }
void __wrap___cudaRegisterFunction(REGISTER);
cudaError_t __wrap_cudaLaunchKernel(LAUNCH);
cudaError_t cudaLaunchKernel(LAUNCH) { return __wrap_cudaLaunchKernel(kernel, 1, 1, nullptr, 0, stream); }
static char first, second;
void register_kernels() {
  const char* names[] = {"_Z4reluPf", "_Z5scalePff"};
  char* stubs[] = {&first, &second};
  for (int i = 0; i < 2; ++i) __wrap___cudaRegisterFunction(0, stubs[i], stubs[i], names[i], -1, 0, 0, 0, 0, 0);
}
int launch(int which, int refused) {
  const void* kernel = which == 0 ? static_cast<const void*>(&first) : which == 1 ? static_cast<const void*>(&second) : &ran;
  cudaLaunchKernel(kernel, 1, 1, nullptr, 0, refused ? reinterpret_cast<cudaStream_t>(8) : nullptr);
  return ran;
}
}
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    home = find_cuda_home()
    if home is None:
        pytest.skip("needs CUDA's headers")
    folder = tmp_path_factory.mktemp("stub")
    (folder / "runtime.cpp").write_text(RUNTIME)
    sources = ["runtime.cpp", CSRC / "extension" / "launch.cpp"]
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-I", Path(home) / "include", *sources, "-o", "stub.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "stub.so"))


@pytest.fixture
def ledger() -> Iterator[LaunchLedger]:
    made = LaunchLedger()
    yield made
    extension_loader.use_ledger(0)
    extension_loader._controls.clear()
    made.close()


def test_launches_are_marked_by_kernel_unless_they_are_switched_off(stub: ctypes.CDLL, ledger: LaunchLedger) -> None:
    stub.register_kernels()
    extension_loader.use_ledger(map_shared(ledger.fd, PAGE_BYTES))
    extension_loader._open(stub)
    for which, refused in ((0, 0), (1, 0), (1, 0), (0, 1), (2, 0)):  # the last is no kernel of the object
        stub.launch(which, refused)
    seen = ledger.read(extension_loader.kernels())
    assert (seen.number, seen.launches, seen.refused, seen.forged) == (4, {"relu": 1, "scale": 2}, {"relu": 1}, "")
    extension_loader.set_launches(enabled=False)
    ledger.deal()
    before = stub.launch(0, 0)
    assert stub.launch(0, 0) == before
    assert ledger.read(extension_loader.kernels()).number == 0
    extension_loader.set_launches(enabled=True)
    assert stub.launch(0, 0) == before + 1
    assert ledger.read(extension_loader.kernels()).launches == {"relu": 1}
    stub.dice_launch_open.restype = ctypes.c_void_p
    assert stub.dice_launch_open() is None  # given once, to the loader
