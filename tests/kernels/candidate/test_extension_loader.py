"""Candidates that build extensions: what is asked, what is loaded, what is launched, and who is told.

With a small builder of our own for plain CPython modules, so that no PyTorch header is compiled: a "kernel" is a loop
that marks itself in the ledger, as the real builder's objects do.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from execution import job
from waiting import PATIENCE_S

from dice.errors import HarnessError
from dice.kernels.builder.cache import BuildCache
from dice.kernels.builder.resource_usage import Multiprocessor
from dice.kernels.grader.executor import Executor, Prebuilder
from dice.kernels.records.explanation import KernelUse
from dice.kernels.records.extension import BuildResult, ExtensionRequest
from dice.kernels.records.job import Judging
from dice.kernels.records.verdict import Verdict
from dice.kernels.sandbox.fork_server import ForkServer
from dice.kernels.sandbox.shared_memory import sealed_copy

MODULE = r"""
#include <Python.h>
struct entry { const char* name; void* host; void* handle; };
struct control {
  struct entry* entries; int* count; int* enabled; unsigned long long** page;
  void (*keep_arguments)(size_t, size_t); int (*kept_piece)(size_t, void*); void (*after_launches)(void (*)(void));
};
static struct entry table[1] = {{"relu_kernel"}};
static int count = 1, enabled = 1, given;
static unsigned long long* page;
static void keep_arguments(size_t piece_bytes, size_t all_bytes) {}
static int kept_piece(size_t i, void* piece) { return 0; }
static void after_launches(void (*look)(void)) {}
struct control* dice_launch_open(void) {
  static struct control control = {table, &count, &enabled, &page, keep_arguments, kept_piece, after_launches};
  return given++ ? NULL : &control;
}
static void mark(const char* name) {  /* as csrc/extension/ledger.h */
  unsigned long long hash = 0xcbf29ce484222325u, word = page[1 + page[0]];
  for (; *name; ++name) hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
  page[1 + page[0]++] = ((word << 29 | word >> 35) * 0x9e3779b97f4a7c15u) ^ hash;
}
/* __global__ void relu_kernel */
static PyObject* relu(PyObject* self, PyObject* args) {
  unsigned long long in, out; long n;
  if (!PyArg_ParseTuple(args, "KKl", &in, &out, &n)) return NULL;
  if (enabled) {
    for (long i = 0; i < n; ++i) { float v = ((float*)in)[i]; ((float*)out)[i] = v > 0 ? v : 0; }
    mark(table[0].name);
  }
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"relu", relu, METH_VARARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "tiny", NULL, -1, methods};
PyMODINIT_FUNC PyInit_tiny(void) { return PyModule_Create(&definition); }
"""

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return []
"""

CANDIDATE = f"""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = '''{MODULE}'''
# before
tiny = load_inline(name="tiny", cpp_sources=SOURCE, functions=["relu"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        # init

    def forward(self, x):
        out = torch.empty_like(x)
        tiny.relu(x.data_ptr(), out.data_ptr(), x.numel())
        return out
"""

CALL = 'tiny = load_inline(name="tiny", cpp_sources=SOURCE, functions=["relu"])'
HIDDEN = CANDIDATE.replace(CALL, f"try:\n    {CALL}\nexcept Exception:\n    tiny = None").replace(
    "        out = torch", "        if tiny is None:\n            return torch.relu(x)\n        out = torch"
)


class TinyBuilder:
    """Compiles the first C source as a CPython module. `counts`: whether objects say that they count launches."""

    def __init__(self, folder: Path, counts: bool = True, status: str | None = None) -> None:
        self.cache = BuildCache(folder / "cache", max_gib=1.0)
        self.folder = folder
        self.counts = counts
        self.status = status
        self.requests: list[ExtensionRequest] = []

    def known(self, request: ExtensionRequest) -> BuildResult | None:
        return None

    def build(self, request: ExtensionRequest) -> BuildResult:
        self.requests.append(request)
        key = request.digest()
        if self.status is not None:
            return BuildResult(status=self.status, key=key, route="cpu", message="texture objects")  # pyright: ignore[reportArgumentType]
        if (kept := self.cache.get(key)) is not None:
            return kept
        source, target = self.folder / f"{key[:12]}.c", self.folder / f"{key[:12]}.so"
        text = "".join((*request.cpp_sources, *(file.text for file in request.files)))
        source.write_text(text)
        include = sysconfig.get_path("include")
        command = ["gcc", "-shared", "-fPIC", "-O1", f"-I{include}", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return BuildResult(status="compile_error", key=key, route="split", message=done.stderr)
        result = BuildResult(
            status="built",
            key=key,
            route="split",
            launches="counted" if self.counts else "unknown",
            seconds=0.5,
            cpu_seconds=0.25,
        )
        return self.cache.put(key, result, target, {"libraries": [], "table": False, "module": request.name})

    def kernel_uses(self, result: BuildResult, processor: Multiprocessor) -> list[KernelUse]:
        return []


@pytest.fixture
def builder(tmp_path: Path) -> TinyBuilder:
    return TinyBuilder(tmp_path)


STRICT = Judging(protocols=("strict",), correctness_trials=2)


def verdict_of(fork_server: ForkServer, builder: TinyBuilder, code: str, backend: str = "cpu") -> Verdict:
    with Executor(fork_server, builder, "cpu", judging=STRICT) as executor:
        (verdict,) = executor.verify(job(code, PROBLEM))
    return verdict


def names(verdict: Verdict) -> set[str]:
    return {finding.name for finding in verdict.deception}


def test_an_extension_is_built_loaded_and_its_launches_counted(fork_server: ForkServer, builder: TinyBuilder) -> None:
    verdict = verdict_of(fork_server, builder, CANDIDATE)
    assert verdict.functional_status == "correct", verdict.message
    assert verdict.launches == {"relu_kernel": 1}
    assert verdict.build is not None
    assert (verdict.build.extensions, verdict.build.loaded, verdict.build.path) == (1, 1, "split")
    assert verdict.build.cpu_seconds == 0.25
    assert not names(verdict) & {"kernel_never_built", "kernel_never_launched", "kernel_output_unused"}
    again = verdict_of(fork_server, builder, CANDIDATE)
    assert again.build is not None
    assert again.build.cached


def test_the_candidate_sees_no_cache(fork_server: ForkServer, builder: TinyBuilder) -> None:
    look = f"import os\nassert not os.path.exists({str(builder.folder)!r})"
    assert verdict_of(fork_server, builder, CANDIDATE.replace("# before", look)).functional_status == "correct"


OVERWRITE = """
import os, stat
wrote = 0
for name in map(int, os.listdir("/proc/self/fd")):
    try:
        if stat.S_ISREG(os.fstat(name).st_mode) and os.pread(name, 4, 0) == b"\\x7fELF":
            with open(f"/proc/self/fd/{name}", "r+b", buffering=0) as writable:
                wrote += writable.write(b"\\0" * 64)
    except OSError:
        pass
assert not wrote, f"wrote {wrote} bytes into an object"
"""
AS_ONE_USER = """
import json, sys
from pathlib import Path
for folder in sys.argv[2:]:
    sys.path.insert(0, folder)
from test_extension_loader import CANDIDATE, OVERWRITE, TinyBuilder, verdict_of
from dice.kernels.candidate.process import candidate_server
builder = TinyBuilder(Path(sys.argv[1]))
with candidate_server() as fork_server:
    for code in (CANDIDATE + OVERWRITE, CANDIDATE):
        verdict = verdict_of(fork_server, builder, code)
        print(json.dumps([verdict.functional_status, verdict.message, verdict.host.isolation, verdict.notes]))
"""


def test_a_candidate_of_the_same_user_cannot_change_the_cached_object(tmp_path: Path) -> None:
    """Root of a user namespace with one user: the candidate owns the cache's files, and could reopen what it was given."""
    if subprocess.run(["unshare", "-r", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no user namespaces")
    folders = map(str, Path(__file__).parents[:3])
    command = ["unshare", "-r", sys.executable, "-c", AS_ONE_USER, str(tmp_path), *folders]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    for status, message, isolation, notes in map(json.loads, done.stdout.splitlines()):
        assert status == "correct", message
        assert "own_user" not in isolation
        assert any("own_user" in note for note in notes)


def test_what_was_changed_in_the_cache_is_built_anew(fork_server: ForkServer, builder: TinyBuilder) -> None:
    assert verdict_of(fork_server, builder, CANDIDATE).functional_status == "correct"
    kept = builder.cache.get(builder.requests[0].digest())
    assert kept is not None
    assert kept.path is not None
    right = Path(kept.path).read_bytes()
    for wrong in (right[:-1], right[:1000] + b"\x90" + right[1001:], b""):
        Path(kept.path).write_bytes(wrong)
        assert builder.cache.get(kept.key) is None
        verdict = verdict_of(fork_server, builder, CANDIDATE)
        assert verdict.functional_status == "correct", verdict.message
        assert verdict.build is not None
        assert not verdict.build.cached
        assert Path(kept.path).read_bytes() == right


def test_an_object_is_handed_over_sealed(tmp_path: Path) -> None:
    path = tmp_path / "object"
    path.write_bytes(b"content")
    fd = sealed_copy(path, hashlib.sha256(b"content").hexdigest())
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
    for change in (
        lambda: os.write(again, b"x"),
        lambda: os.ftruncate(again, 1),
        lambda: os.ftruncate(again, 100),
        lambda: mmap.mmap(again, 7, mmap.MAP_SHARED, mmap.PROT_WRITE),
    ):
        with pytest.raises(PermissionError):
            change()
    assert os.pread(fd, 100, 0) == b"content"
    os.close(again)
    os.close(fd)
    with pytest.raises(HarnessError, match="not the object that was put there"):
        sealed_copy(path, hashlib.sha256(b"other").hexdigest())


def test_an_object_that_is_built_twice_is_loaded_once(fork_server: ForkServer, builder: TinyBuilder) -> None:
    """As PyTorch's own would be: one library, one state."""
    look = "inodes = {line.split()[4] for line in open('/proc/self/maps') if 'dice-object' in line}"
    code = CANDIDATE.replace(CALL, f"{CALL}\nfirst = tiny\n{CALL}\n{look}\nassert len(inodes) == 1, inodes")
    verdict = verdict_of(fork_server, builder, code)
    assert verdict.functional_status == "correct", verdict.message


def test_a_build_in_the_constructor_is_the_same(fork_server: ForkServer, builder: TinyBuilder) -> None:
    code = CANDIDATE.replace(CALL, "").replace("# init", f"global tiny\n        {CALL}")
    verdict = verdict_of(fork_server, builder, code)
    assert verdict.functional_status == "correct", verdict.message
    assert verdict.launches == {"relu_kernel": 1}
    broken = verdict_of(fork_server, builder, code.replace("unsigned long long in", "unsigned long in in"))
    assert (broken.status, broken.stage) == ("compile_error", "build")


def test_files_of_the_scratch_folder_can_be_built(fork_server: ForkServer, builder: TinyBuilder) -> None:
    code = CANDIDATE.replace(
        CALL,
        "from torch.utils.cpp_extension import load\nopen('tiny.cpp', 'w').write(SOURCE)\n"
        "tiny = load('tiny', ['tiny.cpp'])",
    )
    verdict = verdict_of(fork_server, builder, code)
    assert verdict.functional_status == "correct", verdict.message
    assert builder.requests[-1].kind == "load"


def test_a_refused_build_is_a_compile_error_with_the_compilers_words(
    fork_server: ForkServer, builder: TinyBuilder
) -> None:
    verdict = verdict_of(fork_server, builder, CANDIDATE.replace("Py_RETURN_NONE;", "Py_RETURN_NOTHING;"))
    assert (verdict.status, verdict.stage) == ("compile_error", "build")
    assert "Py_RETURN_NOTHING" in verdict.message
    assert verdict.build is not None
    assert (verdict.build.extensions, verdict.build.loaded) == (1, 0)


def test_an_error_that_follows_a_refused_build_is_not_mistaken_for_it(
    fork_server: ForkServer, builder: TinyBuilder
) -> None:
    code = HIDDEN.replace("Py_RETURN_NONE;", "Py_RETURN_NOTHING;").replace("class ModelNew", "1 / 0\nclass ModelNew")
    verdict = verdict_of(fork_server, builder, code)
    assert verdict.status == "import_error"
    assert "ZeroDivisionError" in verdict.message
    raised_from = CANDIDATE.replace("Py_RETURN_NONE;", "Py_RETURN_NOTHING;").replace(
        CALL,
        "try:\n    tiny = load_inline(name='tiny', cpp_sources=SOURCE)\n"
        "except RuntimeError as error:\n    raise ValueError('no extension') from error",
    )
    assert verdict_of(fork_server, builder, raised_from).status == "compile_error"


def test_a_hidden_build_failure_is_told(fork_server: ForkServer, builder: TinyBuilder) -> None:
    verdict = verdict_of(fork_server, builder, HIDDEN.replace("Py_RETURN_NONE;", "Py_RETURN_NOTHING;"))
    assert verdict.functional_status == "correct"
    assert verdict.status == "deceptive"
    assert "kernel_never_built" in names(verdict)
    assert verdict.build is not None
    assert (verdict.build.extensions, verdict.build.loaded) == (1, 0)
    assert "kernel_never_built" not in names(verdict_of(fork_server, builder, HIDDEN))


def test_a_kernel_that_forward_never_launches_is_told(fork_server: ForkServer, builder: TinyBuilder) -> None:
    code = CANDIDATE.replace("        out = torch", "        return torch.relu(x)\n        out = torch")
    verdict = verdict_of(fork_server, builder, code)
    assert verdict.launches == {}
    assert "kernel_never_launched" in names(verdict)


def test_a_kernel_whose_result_is_not_used_is_told(fork_server: ForkServer, builder: TinyBuilder) -> None:
    code = CANDIDATE.replace("return out", "return torch.relu(x)")
    verdict = verdict_of(fork_server, builder, code)
    assert verdict.launches == {"relu_kernel": 1}
    assert "kernel_output_unused" in names(verdict)


def test_calls_are_counted_where_launches_cannot_be(fork_server: ForkServer, tmp_path: Path) -> None:
    verdict = verdict_of(fork_server, TinyBuilder(tmp_path, counts=False), CANDIDATE)
    assert verdict.functional_status == "correct"
    assert verdict.launches is None
    assert "kernel_never_launched" not in names(verdict)


def test_what_the_cpu_cannot_run_is_its_own_status_hidden_or_not(fork_server: ForkServer, tmp_path: Path) -> None:
    builder = TinyBuilder(tmp_path, status="unsupported_on_cpu")
    for code in (CANDIDATE, HIDDEN):
        verdict = verdict_of(fork_server, builder, code)
        assert (verdict.status, verdict.stage) == ("unsupported_on_cpu", "build")
        assert "texture objects" in verdict.message


def test_a_broken_builder_is_the_hosts_fault_and_tried_twice(fork_server: ForkServer, tmp_path: Path) -> None:
    class Broken(TinyBuilder):
        def build(self, request: ExtensionRequest) -> BuildResult:
            self.requests.append(request)
            raise HarnessError("the disk is full.")

    builder = Broken(tmp_path)
    verdict = verdict_of(fork_server, builder, CANDIDATE)
    assert verdict.status == "host_error"
    assert verdict.retries == 1
    assert len(builder.requests) == 2


def test_builds_are_bounded_in_number(fork_server: ForkServer, builder: TinyBuilder) -> None:
    code = CANDIDATE.replace("# before", "for i in range(80):\n    load_inline(name='tiny', cpp_sources=SOURCE)")
    verdict = verdict_of(fork_server, builder, code)
    assert verdict.status == "timeout"
    assert len(builder.requests) == 64


def test_builds_from_threads_do_not_get_mixed_up(fork_server: ForkServer, builder: TinyBuilder) -> None:
    code = CANDIDATE.replace(
        "# before",
        """
import threading
built = []
threads = [
    threading.Thread(target=lambda: built.append(load_inline(name="tiny", cpp_sources=SOURCE))) for _ in range(4)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(built) == 4 and all(hasattr(module, "relu") for module in built), built
""",
    )
    verdict = verdict_of(fork_server, builder, code)
    assert verdict.functional_status == "correct", verdict.message
    assert verdict.build is not None
    assert verdict.build.loaded == 5


@pytest.fixture
def prebuilder(fork_server: ForkServer, builder: TinyBuilder) -> Prebuilder:
    return Prebuilder(fork_server, builder, "cuda", judging=STRICT)


def test_prebuilding_warms_the_cache_at_import_and_in_the_constructor(
    prebuilder: Prebuilder, builder: TinyBuilder
) -> None:
    inside = CANDIDATE.replace(CALL, "").replace("# init", f"global tiny\n        {CALL}")
    for code in (CANDIDATE, inside):
        assert prebuilder.prebuild(job(code, PROBLEM)) is None
    assert len(builder.requests) == 2
    assert builder.cache.get(builder.requests[0].digest()) is not None


@pytest.mark.parametrize("question", ["torch.cuda.is_available()", "torch.cuda.device_count()"])
def test_prebuilding_builds_what_is_built_only_where_there_is_a_gpu(
    prebuilder: Prebuilder, builder: TinyBuilder, question: str
) -> None:
    asks = CANDIDATE.replace(CALL, f"tiny = None\nif {question}:\n    {CALL}\n    torch.zeros(1, device='cuda')")
    assert prebuilder.prebuild(job(asks, PROBLEM)) is None  # what it does with the GPU that is not there is no failure
    assert len(builder.requests) == 1


def test_prebuilding_settles_a_refused_build_unless_it_is_hidden(prebuilder: Prebuilder, builder: TinyBuilder) -> None:
    settled = prebuilder.prebuild(job(CANDIDATE.replace("Py_RETURN_NONE;", "Py_RETURN_NOTHING;"), PROBLEM))
    assert settled is not None
    assert [(verdict.status, verdict.stage) for verdict in settled] == [("compile_error", "build")]
    assert prebuilder.prebuild(job(HIDDEN.replace("Py_RETURN_NONE;", "Py_RETURN_NOTHING;"), PROBLEM)) is None
