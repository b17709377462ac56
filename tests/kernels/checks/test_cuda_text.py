"""What the checks read in CUDA and C++ text, each rule beside a text on which it must stay silent."""

from __future__ import annotations

import pytest
from cuda_soup import MACROS, REDUCTION, TILES

from dice.kernels.checks.cuda_kernels import (
    aten_calls,
    has_device_lambda,
    kernel_names,
    launched_functors,
    library_calls,
    line_of,
    pointers_of,
)
from dice.kernels.checks.cuda_state import lasting_state
from dice.kernels.checks.host_loops import host_loops
from dice.kernels.checks.messages import is_message, replaces_writers
from dice.kernels.checks.rings import only_resets
from dice.kernels.checks.streams import unjoined_streams
from dice.kernels.checks.trip_counts import constants, evaluated, rounds
from dice.kernels.source.cuda_source import CudaSource

# ---- kernels and libraries


def test_kernels_by_name() -> None:
    assert kernel_names(CudaSource(REDUCTION)) == ["row_sums"]
    assert kernel_names(CudaSource(TILES)) == ["multiply"]
    assert kernel_names(CudaSource(MACROS)) == ["macro ELEMENTWISE"]
    assert kernel_names(CudaSource("__global__ void k(); // __global__ void l() { }")) == []


def test_pointers_of_a_kernel() -> None:
    text = (
        "__global__ void k(const float* __restrict__ x, int n, float* out[2], float (&r)[3], int*,"
        " at::PackedTensorAccessor32<float, 2> a, Inputs s, float f) { out[0] = x[n] + a[0][0] + s.values[0] + f; }"
    )
    source = CudaSource(text)
    (kernel,) = source.kernels
    assert pointers_of(kernel, source.body(kernel)) == {"x", "out", "a", "s"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("void f() { g([=] __device__ (int i) { return i; }); }", True),
        ("struct F { __device__ float operator()(float x) { return x; } };", True),
        ("__device__ float f(float x) { return x; }", False),
        ("void f() { g([=](int i) { return i; }); }", False),
    ],
)
def test_device_lambdas(text: str, found: bool) -> None:
    assert has_device_lambda(CudaSource(text)) == found


FUNCTOR = "struct F { __device__ float operator()(float x) { return x; } }; "
OWN_KERNEL = "template <class G> __global__ void each(G g, float* y) { y[0] = g(y[0]); } "


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (FUNCTOR + OWN_KERNEL + "void f() { each<<<1, 1>>>(F{}, y); }", False),
        (OWN_KERNEL + "void f() { each<<<1, 1>>>([=] __device__ (float x) { return x; }, y); }", False),
        (FUNCTOR + OWN_KERNEL + "void gpu_kernel(F f) { each<<<1, 1>>>(f, y); } void g() { gpu_kernel(F{}); }", False),
        (FUNCTOR + OWN_KERNEL + "void f() { at::native::gpu_kernel(iter, F{}); }", True),
        (
            FUNCTOR + OWN_KERNEL + "void f() { at::native::opmath_symmetric_gpu_kernel_with_scalars<float>(i, F{}); }",
            True,
        ),
        (FUNCTOR + "void f() { apply(F{}); }", True),
        (OWN_KERNEL + "void f() { gpu_kernel(iter, 1); }", False),
    ],
)
def test_functors_that_a_library_launches(text: str, found: bool) -> None:
    assert launched_functors([CudaSource(text)]) == found


def test_functors_of_another_file_are_arguments_of_the_kernels() -> None:
    assert not launched_functors([CudaSource(FUNCTOR), CudaSource(OWN_KERNEL)])
    assert launched_functors([CudaSource(FUNCTOR), CudaSource("void f();")])


def test_what_kernels_call_of_cub_is_no_library_beside_them() -> None:
    own = "__global__ void f() { cub::BlockReduce<float, 64>(t).Reduce(x, cub::Max()); cub::WarpScan<int>(t).Sum(1); }"
    assert library_calls(CudaSource(own)) == []
    assert library_calls(CudaSource("void f() { cub::DispatchReduce<float>::Dispatch(t); }")) == ["cub::DispatchReduce"]


def test_calls_of_libraries() -> None:
    text = """void f() {
      cublasCreate(&h); cublasSgemm(h, 1); cudnnConvolutionForward<float>(h); cub::DeviceReduce::Sum(a); cublasHandle_t h;
      cudnnSetTensor4dDescriptor(d); thrust::sort(a, b); // cufftExecC2C(p)
      at::matmul(a, b); torch::empty({1}); x.matmul(y); at::native::relu(x); torch::relu(z); auto g = at::mm;
    }"""
    source = CudaSource(text)
    assert library_calls(source) == ["cublasSgemm", "cudnnConvolutionForward", "cub::DeviceReduce", "thrust::sort"]
    assert aten_calls(source) == ["at::matmul", "torch::relu"]


def test_a_line_of_the_source() -> None:
    source = CudaSource(f"int a;\n   int b = {'1 + ' * 100}1;\nint c;")
    token = next(token for token in source.tokens if token.text == "b")
    said = line_of(source, token)
    assert said.startswith("C++ line 2: int b = 1 + 1")
    assert len(said) == len("C++ line 2: ") + 200


# ---- state between calls


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("std::map<void*, T> cache; T f(T x) { return cache[x.data_ptr()]; }", ["result_cache"]),
        ("std::map<long, T> cache; T f(T x) { return cache[(int64_t)x.data_ptr()]; }", ["result_cache"]),
        ("std::map<void*, T> cache; T f(T x) { auto it = cache.find(x.data_ptr()); }", ["result_cache"]),
        ("T f(T x) { static void* last; if (x.data_ptr() == last) { } }", ["result_cache"]),
        ("T f(T x) { static float* last; float* p = x.data_ptr<float>(); if (last != p) { } }", ["result_cache"]),
        ("T f(T x) { std::map<void*, T> cache; return cache[x.data_ptr()]; }", []),
        ("T f(T x) { static float* p = nullptr; if (x.data_ptr() == nullptr) { } }", []),
        ("std::map<long, T> cache; T f(T x) { return cache[x.numel()]; }", []),
        ("void f() { static int calls = 0; if (++calls > 8) { g(); } }", ["call_counting"]),
        ("void f() { static int calls = 0; calls = calls + 1; if (calls > 8) { g(); } }", ["call_counting"]),
        ("void f() { static int calls = 0; calls = 1 + calls; if (calls > 8) { g(); } }", ["call_counting"]),
        ("void f() { static int left = 8; left = left - 1; if (left < 0) { g(); } }", ["call_counting"]),
        ("void f() { static int left = 8; left -= 1; if (left < 0) { g(); } }", ["call_counting"]),
        ("void f() { static int most = 8; most = n + 1; if (most > 8) { g(); } }", []),
        ("int calls; void f() { calls += 1; return calls % 2 ? a : b; }", ["call_counting"]),
        ("void f() { int calls = 0; if (++calls > 8) { g(); } }", []),
        ("void f() { static int calls = 0; ++calls; if (n > 8) { g(); } }", []),
        ("void f() { static bool set = false; if (!set) { g(); set = true; } }", []),
        ('void f() { static int calls = 0; if (calls++ == 0) { printf("first\\n"); } }', []),
        ("void f() { static int slot = 0; if (++slot == 4) slot = 0; }", []),
    ],
)
def test_state_between_calls(text: str, names: list[str]) -> None:
    source = CudaSource(text)
    found = list(lasting_state(source))
    assert [name for name, _, _ in found] == names


UPLOAD = "T f(T w) { static float* last; if (w.data_ptr() != last) { %s last = w.data_ptr(); } k<<<1, 1>>>(); }"
COPY = "cudaMemcpyToSymbol(taps, w.data_ptr(), 36); "


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (COPY, []),
        (COPY + 'if (error != cudaSuccess) { printf("%s", cudaGetErrorString(error)); }', []),
        ("cudaMemcpyToSymbol(fresh, &one, 4); ", ["result_cache"]),
        (COPY + "cudaMemcpyToSymbol(fresh, &one, 4); ", ["result_cache"]),
        (COPY + "k<<<1, 1>>>(); ", ["result_cache"]),
        (COPY + "kept = at::relu(w); ", ["result_cache"]),
        (COPY + "return kept; ", ["result_cache"]),
        ("", ["result_cache"]),
    ],
)
def test_weights_that_are_uploaded_when_they_change(body: str, names: list[str]) -> None:
    found = [name for name, _, _ in lasting_state(CudaSource(UPLOAD.replace("%s", body, 1)))]
    assert sorted(set(found)) == names
    answers_otherwise = UPLOAD.replace("%s", body, 1).replace("} k<<<", "} else { return kept; } k<<<")
    assert {name for name, _, _ in lasting_state(CudaSource(answers_otherwise))} == {"result_cache"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{ printf("%d\\n", calls); }', True),
        ('std::cout << "first" << calls << std::endl;', True),
        ('{ std::cerr << "a"; puts("b"); }', True),
        ('{ printf("a"); } else { g(); }', False),
        ('{ printf("a"); g(); }', False),
        ('{ printf("%n", &calls); }', False),
        ("{ printf(text); }", False),
        ("{ std::cout << g(); }", False),
        ("{ std::cerr << x.numel() << (int)x.size(0); }", True),
        ('printf("%d", dim());', False),
        ("{ calls = 0; }", False),
        ('{ printf("a")', False),
    ],
)
def test_messages(body: str, message: bool) -> None:
    tokens = CudaSource(f"if (calls) {body}").tokens
    assert is_message(tokens, 4, {"calls"}) == message


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("#define printf(...) g()", True),
        ("std::cout.rdbuf(mine);", True),
        ("#define PRINT printf_s", False),
        ('printf("rdbuf");', False),
        ("int puts(const char* text, int way) { live = way; }", True),
        ("static std::ostream& endl(std::ostream& out);", True),
        ("auto printf = [](const char* text) { live = 0; };", True),
        ("struct Rows { int sizes() { live = 0; return 1; } };", True),
        ("class Rows { std::function<int()> other, numel; };", True),
        ("struct Rows { decltype(other) dim; };", True),
        ("struct Rows { int size; int numel; std::vector<int> all; };", False),
        ("template <class T> void f(T x) { auto size = x.size(0); }", False),
        ('int numel = x.numel(); if (numel) printf("%d", numel); else puts("none");', False),
    ],
)
def test_what_replaces_writers(text: str, replaced: bool) -> None:
    assert replaces_writers(CudaSource(text).tokens) == replaced


@pytest.mark.parametrize(
    ("text", "resets"),
    [
        ("if (++slot == 4) slot = 0;", True),
        ("if (++slot == 4) { slot = 0; }", True),
        ("if (++slot == 4) { slot = 0; g(); }", False),
        ("if (++slot == 4) slot = 0; else g();", False),
        ("if (++slot == 4) other = 0;", False),
        ("if (++slot == 4) slot = g;", False),
        ("while (++slot == 4) slot = 0;", False),
    ],
)
def test_rings(text: str, resets: bool) -> None:
    assert only_resets(CudaSource(text).tokens, 0, {"slot"}) == resets


# ---- work on the host


def loop(read: str, count: str = "n") -> str:
    return (
        f"T f(at::Tensor x, int n) {{ auto p = x.data_ptr<float>(); for (int i = 0; i < {count}; ++i) {{ {read} }} }}"
    )


def through(declared: str, loop: str) -> str:
    return (
        f"T f(at::Tensor x, int n) {{ {declared} cudaMemcpy(h, x.data_ptr(), 4 * n, cudaMemcpyDeviceToHost); {loop} }}"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (loop("sum += p[i];"), True),
        (loop("q[i] = p[i] * 2;"), True),
        (loop("sum += *p;"), True),
        (loop("p[i] = 0;"), False),
        (loop("q[i] = p[i];"), False),
        (loop("g(&p[i]);"), False),
        (loop("sum += p[i];", "8"), False),
        (loop("sum += p[i];", "800"), True),
        ("#define TAPS 8\n" + loop("sum += p[i];", "TAPS"), False),
        (loop("sum += p[i];").replace("<float>", "<int>"), False),
        (loop("sum += p[i];").replace("T f(", "__global__ void f("), False),
        ("T f(at::Tensor x) { auto p = x.data_ptr<float>(); g(p[0]); }", False),
        ("T f(at::Tensor x) { auto p = x.data_ptr<float>(); std::accumulate(p, p + n, 0.f); }", True),
        (
            "T f(at::Tensor x) { auto h = x.cpu(); return std::reduce(h.data_ptr<double>(), h.data_ptr<double>() + n); }",
            True,
        ),
        ("T f(at::Tensor x) { std::sort(x.data_ptr<at::Half>(), e, [](auto a, auto b) { return a < b; }); }", True),
        ("T f(at::Tensor l) { return std::accumulate(l.data_ptr<int64_t>(), l.data_ptr<int64_t>() + n, 0); }", False),
        ("T f(at::Tensor x) { std::copy(x.data_ptr<float>(), x.data_ptr<float>() + n, w); }", False),
        (through("std::vector<float> h(n);", "for (auto& v : h) v = std::sin(v);"), True),
        (through("std::vector<float> h(n);", "for (float v : h) { sum += v; }"), True),
        (through("std::vector<float> h(n);", "for (float v : h) kept.push_back(v);"), False),
        (through("std::vector<float> h(n);", "for (auto& v : h) v = 0;"), False),
        (through("float h[8];", "for (float v : h) sum += v;"), False),
        (through("float h[800];", "for (float v : h) sum += v;"), True),
        (through("std::vector<int> h(n);", "for (int v : h) sum += v;"), False),
    ],
)
def test_loops_on_the_host(text: str, found: bool) -> None:
    assert bool(list(host_loops(CudaSource(text)))) == found


SUM = "__host__ __device__ float sum(const float* v, int n) { float s = 0; while (n--) s += v[n]; return s; } "
TAKES = "struct S { float total; S(const float* p, int n) { %s } }; "
MAKES = "T f(at::Tensor x, int n) { auto h = x.cpu(); %s }"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (SUM + MAKES % "float s = sum(h.data_ptr<float>(), n);", True),
        (SUM + TAKES % "total = sum(p, n);" + MAKES % "k<<<1, 1>>>(S(h.data_ptr<float>(), n));", True),
        (SUM + TAKES % "total = sum(p + n, n);" + MAKES % "S s(h.data_ptr<float>(), n);", True),
        (SUM + TAKES % "auto row = p + n; total = sum(row, n);" + MAKES % "S s{h.data_ptr<float>(), n};", True),
        (
            SUM
            + "struct S { float t; S(const float* p) : t(sum(p, 999)) { } }; "
            + MAKES % "S s{h.data_ptr<float>()};",
            True,
        ),
        (
            SUM
            + "struct S { void fit(const float* p) { sum(p, 999); } }; "
            + MAKES % "S s; s.fit(h.data_ptr<float>());",
            True,
        ),
        (
            SUM
            + "template <int N> struct S { S(const float* p) { for (int i = 0; i < N; ++i) t += p[i]; } float t; }; "
            + MAKES % "S<999> s(h.data_ptr<float>());",
            True,
        ),
        (SUM + TAKES % "total = sum(p, n);" + "S s(table, 99);" + MAKES % "k<<<1, 1>>>(h.data_ptr<float>());", False),
        (
            SUM + "__global__ void k(float* x) { x[0] = sum(x, 9); } " + MAKES % "k<<<1, 1>>>(x.data_ptr<float>());",
            False,
        ),
        (
            SUM + "void launch(float* x, float* taps, int n) { k<<<1, 1>>>(x, 1 / sum(taps, n)); } "
            "T f(at::Tensor x, int n) { float taps[99]; launch(x.data_ptr<float>(), taps, n); }",
            False,
        ),
        (SUM + TAKES % "at = p;" + MAKES % "S s(x.data_ptr<float>(), n);", False),
        (SUM.replace("float", "long") + MAKES % "long s = sum(h.data_ptr<long>(), n);", False),
    ],
)
def test_helpers_that_the_host_calls(text: str, found: bool) -> None:
    assert bool(list(host_loops(CudaSource(text)))) == found


def test_constants_of_a_source() -> None:
    source = CudaSource(
        "#define A 4  // four\n#define B(x) 2\nconst int C = A * 2; constexpr unsigned int D = C + 1;\n"
        "static const size_t E = f(); constexpr std::size_t F = (3);\n"
        "void f() { const int G = 1; } void g() { const int G = 2; }"
    )
    assert {"A": 4, "C": 8, "D": 9, "F": 3}.items() <= constants(source).items()
    assert not {"B", "E", "G"} & constants(source).keys()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("2 * N + 1", 9),
        ("(N)", 4),
        ("(N + 1) * 2", None),
        ("N - 1", None),
        ("M", None),
        ("2 ** 8", None),
        ("", None),
    ],
)
def test_values_of_constants(text: str, value: int | None) -> None:
    assert evaluated(text, {"N": 4}) == value


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("for (int i = 0; i < 8; ++i) { g(); }", 8),
        ("for (int i = 2; i <= N; i++) { g(); }", 3),
        ("for (int i = 0; i != 3; i += 1) { for (int j = 0; j < 5; ++j) g(); }", 15),
        ("for (int i = 5; i < 2; ++i) { }", 0),
        ("for (int i = 0; i < n; ++i) { }", None),
        ("for (int i = 8; i > 0; --i) { }", None),
        ("for (int i = 0; i < 8; ++i) { i -= 1; }", None),
        ("for (int i = 0; i < 8; ++i) { while (g()) { } }", None),
        ("for (;;) { }", None),
        ("for (auto x : y) { }", None),
        ("g();", 1),
    ],
)
def test_rounds_of_a_loop(text: str, times: int | None) -> None:
    assert rounds(CudaSource(text).tokens, {"N": 4}) == times


# ---- streams


@pytest.mark.parametrize(
    ("text", "unjoined"),
    [
        ("void f() { cudaStream_t s; cudaStreamCreate(&s); k<<<1, 1, 0, s>>>(); }", ["cudaStreamCreate"]),
        ("void f() { auto s = at::cuda::getStreamFromPool(); k<<<1, 1, 0, s>>>(); }", ["getStreamFromPool"]),
        ("void f() { cudaStream_t s; cudaStreamCreate(&s); cudaStreamSynchronize(s); }", []),
        ("void f() { auto s = at::cuda::getStreamFromPool(); s.synchronize(); }", []),
        ("void f() { cudaStream_t s; cudaStreamCreate(&s); cudaStreamWaitEvent(s, e); }", ["cudaStreamCreate"]),
        ("void f() { cudaStream_t s; cudaStreamCreate(&s); cudaStreamWaitEvent(main, e); }", []),
        ("void f() { k<<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>(); }", []),
    ],
)
def test_streams(text: str, unjoined: list[str]) -> None:
    assert [token.text for token in unjoined_streams(CudaSource(text))] == unjoined


LANE = """struct Lane {
  cudaStream_t stream; cudaEvent_t ready;
  Lane() { cudaStreamCreate(&stream); cudaEventCreate(&ready); }
  void join() { cudaStreamWaitEvent(0, ready, 0); }
  void mark() { cudaEventRecord(ready, stream); }
  void run(float* x) { k<<<1, 1, 0, stream>>>(x); }
};
"""
JOINER = "struct Joiner { Lane& lane; ~Joiner() { lane.mark(); lane.join(); } }; "
WORK = "k<<<1, 1, 0, lane.stream>>>(x); "


@pytest.mark.parametrize(
    ("text", "late"),
    [
        (LANE + "void f() { static Lane lane; lane.join(); " + WORK + "lane.mark(); }", True),
        (LANE + "void f() { static Lane lane; lane.join(); lane.run(x); lane.mark(); }", True),
        (LANE + "void f() { static Lane lane; lane.join(); cudaMemcpyAsync(y, x, n, kind, lane.stream); }", True),
        (LANE + "void f() { static Lane lane; lane.join(); at::cuda::CUDAStreamGuard g(lane.stream); run(x); }", True),
        (LANE + "void f() { static Lane lane; lane.join(); library(lane.stream); lane.mark(); }", True),
        (LANE + "void g(cudaStream_t s) { k<<<1, 1, 0, s>>>(); } void f() { Lane l; l.join(); g(l.stream); }", True),
        (LANE + "void f() { auto go = [&] { " + WORK + "}; lane.join(); go(); }", True),
        (LANE + 'void f() { lane.join(); AT_DISPATCH_FLOATING_TYPES(t, "f", [&] { ' + WORK + "}); }", True),
        (LANE + "void f() { for (int i = 0; i < n; ++i) { lane.join(); " + WORK + "lane.mark(); } }", True),
        (LANE + "void f() { cudaStreamSynchronize(lane.stream); " + WORK + "}", True),
        (LANE + JOINER + "void f() { static Lane lane; static Joiner joiner{lane}; " + WORK + "}", True),
        (LANE + "void f() { static Lane lane; " + WORK + "lane.mark(); lane.join(); }", False),
        (LANE + "void f() { lane.join(); " + WORK + "lane.mark(); lane.join(); }", False),
        (LANE + JOINER + "void f() { Lane lane; Joiner joiner{lane}; " + WORK + "}", False),
        (LANE + JOINER + "void f() { auto joiner = std::make_unique<Joiner>(lane); " + WORK + "}", False),
        (LANE + "void f() { auto done = [&] { lane.join(); }; " + WORK + "lane.mark(); done(); }", False),
        (LANE + "void f() { auto done = at_exit([&] { lane.join(); }); " + WORK + "lane.mark(); }", False),
        (LANE + "void wait_all(Lane& l) { l.join(); } void f() { " + WORK + "lane.mark(); wait_all(lane); }", False),
        (LANE + "void start() { " + WORK + "lane.mark(); } void finish() { lane.join(); }", False),
        (
            LANE + "void f() { for (int i = 0; i < n; ++i) { lane.join(); " + WORK + "lane.mark(); } lane.join(); }",
            False,
        ),
        (
            LANE + "void f() { for (int i = 0; i <= n; ++i) { if (i > 0) lane.join(); if (i < n) { " + WORK + "} } }",
            False,
        ),
        (
            LANE
            + "void f() { "
            + WORK
            + "lane.join(); auto main = at::cuda::getCurrentCUDAStream(); k<<<1, 1, 0, main>>>(); }",
            False,
        ),
        (
            LANE
            + "void g(cudaStream_t stream) { k<<<1, 1, 0, stream>>>(); } void f() { "
            + WORK
            + "lane.join(); g(0); }",
            False,
        ),
        (LANE + "void f() { lane.join(); k<<<1, 1>>>(); }", False),
        (LANE + "void f() { if (n > 9) { " + WORK + "lane.join(); return; } k<<<1, 1>>>(); }", False),
    ],
)
def test_a_wait_before_the_work_is_no_join(text: str, late: bool) -> None:
    assert bool(list(unjoined_streams(CudaSource(text)))) == late
