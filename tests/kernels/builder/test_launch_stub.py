"""The launch stubs of objects for a GPU, driven without one: a runtime that only answers, our own object file, the loader."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dice.kernels.builder.headers import CSRC
from dice.kernels.builder.toolchain_probe import find_cuda_home
from dice.kernels.candidate import extension_loader
from dice.kernels.sandbox.launch_ledger import PAGE_BYTES, LaunchLedger
from dice.kernels.sandbox.linux import map_shared

RUNTIME = """
#include <cstdint>
#include <cstring>
#include <cuda_runtime_api.h>
#define REGISTER void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*
#define LAUNCH const void* kernel, dim3, dim3, void** arguments, size_t, cudaStream_t stream
extern "C" {
unsigned __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) { return 0; }
void** __cudaRegisterFatBinary(void*) { return nullptr; }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterFunction(REGISTER) {}
void __real___cudaRegisterFunction(REGISTER) {}
static int ran;
static float device[8], neighbour[4];  // one allocation for each
cudaError_t __real_cudaLaunchKernel(LAUNCH) {
  if (arguments != nullptr) device[1] = 2 * device[0];
  return ++ran, stream != nullptr ? cudaErrorInvalidValue : cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
static bool capturing;
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return *status = capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) {
  return memcpy(to, from, size), cudaSuccess;
}
static bool inside(const void* p, const void* base, size_t size) { return p >= base && p < (const char*)base + size; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void* address) {
  const bool known = inside(address, device, sizeof device) || inside(address, neighbour, sizeof neighbour);
  found->type = known ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  return found->devicePointer = const_cast<void*>(address), cudaSuccess;
}
static int range(uintptr_t* base, size_t* size, uintptr_t address) {
  const bool first = inside((void*)address, device, sizeof device);
  *base = (uintptr_t)(first ? device : neighbour), *size = first ? sizeof device : sizeof neighbour;
  return 0;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** found, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult*) {
  return *found = (void*)range, cudaSuccess;
}
cudaError_t cudaFuncGetParamInfo(const void*, size_t i, size_t* offset, size_t* size) {
  return i < 2 ? (*offset = 8 * i, *size = i == 0 ? 8 : 4, cudaSuccess) : cudaErrorInvalidValue;
}
void __wrap___cudaRegisterFunction(REGISTER);
cudaError_t __wrap_cudaLaunchKernel(LAUNCH);
cudaError_t cudaLaunchKernel(LAUNCH) { return __wrap_cudaLaunchKernel(kernel, 1, 1, arguments, 0, stream); }
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
void launch_with(float value, float number, int captured) {
  float* pointer = device + 1;
  device[0] = value, device[2] = 7, neighbour[0] = 9;
  float* table = neighbour;
  memcpy(device + 3, &table, sizeof table);  // a pointer behind a pointer
  void* arguments[] = {&pointer, &number};
  capturing = captured;
  cudaLaunchKernel(&first, 1, 1, arguments, 0, nullptr);
}
}
"""


@pytest.fixture(scope="module")
def object_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = find_cuda_home()
    if home is None:
        pytest.skip("needs CUDA's headers")
    folder = tmp_path_factory.mktemp("stub")
    (folder / "runtime.cpp").write_text(RUNTIME)
    sources = ["runtime.cpp", CSRC / "extension" / "launch.cpp"]
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-I", Path(home) / "include", *sources, "-o", "stub.so"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "stub.so"


@pytest.fixture
def stub(object_file: Path, tmp_path: Path) -> ctypes.CDLL:
    """A copy of its own, whose controls nobody has taken."""
    return ctypes.CDLL(str(shutil.copy(object_file, tmp_path)))


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


def test_what_a_launch_is_given_is_kept_before_it_and_after_it(stub: ctypes.CDLL, ledger: LaunchLedger) -> None:
    stub.launch_with.argtypes = [ctypes.c_float, ctypes.c_float, ctypes.c_int]
    stub.register_kernels()
    extension_loader._open(stub)
    extension_loader.keep_arguments(24, 1 << 20)
    stub.launch_with(3.0, 0.5, 0)
    stub.launch_with(4.0, 0.25, 1)  # nothing can be read while a graph is captured
    kept = [(piece.moment % 2, bytes(piece.data.tolist())) for piece in extension_loader.kept_arguments()]
    extension_loader.keep_arguments(0, 0)
    stub.launch_with(5.0, 0.125, 0)
    assert not extension_loader.kept_arguments()
    numbers = [struct.unpack("<f", piece)[0] for after, piece in kept if len(piece) == 4]
    assert numbers == [0.5]
    blocks = [(after, struct.unpack("<6f", piece)[:2]) for after, piece in kept if len(piece) == 24]
    assert blocks == [(0, (0.0, 7.0)), (1, (6.0, 7.0))]  # from the pointer on, 24 bytes at most; 2 x 3 by the kernel
    assert [struct.unpack("<4f", piece)[0] for _, piece in kept if len(piece) == 16] == [9.0]
