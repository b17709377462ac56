"""The host side of a .cu: it does what nvcc's host code does, with g++ alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cuda_text import compile_host, run_host, split_source

from dice.kernels.builder.host_unit import DEVICE_CALL, render_host, scoped_name
from dice.kernels.source.lexer import SplitRefused


def host(source: str, **arguments: object) -> str:
    return render_host(split_source(source), "cuda.cu", **arguments)  # pyright: ignore[reportArgumentType]


def printed(source: str, main: str, folder: Path) -> str:
    return run_host(f'{host(source)}\n#line 1 "main"\nint main() {{ {main} }}', folder)


KERNEL = "__global__ void k(const float* x, int n, float f) { x[threadIdx.x] = __expf(f); }\n"


def test_a_launch_hands_over_its_configuration_and_its_arguments(tmp_path: Path) -> None:
    source = KERNEL + "void run(float* x, cudaStream_t s) { k<<<dim3(2, 3), 64, 128, s>>>(x, 7, 2.5f); }"
    main = """
    float x;
    look = [] {
        std::printf(" %g %d %g %d", **(float**)arguments[0], *(int*)arguments[1], *(float*)arguments[2], !arguments[3]);
    };
    x = 0.5f;
    run(&x, (cudaStream_t)9);
    std::printf(" %d", launched == (void*)&k);
    """
    assert printed(source, main, tmp_path) == "<<<2 3 1, 64 1 1, 128, 9>>> 0.5 7 2.5 1 1"


def test_what_a_launch_leaves_out_is_what_cuda_gives(tmp_path: Path) -> None:
    source = "__global__ void k() { }\nvoid run() { k<<<4, 32>>>(); }"
    assert printed(source, 'look = [] { std::printf(" %d", !arguments[0]); }; run();', tmp_path) == (
        "<<<4 1 1, 32 1 1, 0, 0>>> 1"
    )


def test_each_instance_of_a_template_is_a_kernel_of_its_own(tmp_path: Path) -> None:
    source = """
    template <typename T, int N = 4> __global__ void k(T* x, T y) { }
    template <typename T> void run(T* x) { k<T, 8><<<1, 1>>>(x, T(3)); }
    void both(float* a, double* b) { run(a); run(b); k<float><<<1, 1>>>(a, 1); }
    """
    main = """
    look = [] {
        const void* instances[] = {(void*)&k<float, 8>, (void*)&k<double, 8>, (void*)&k<float, 4>};
        for (auto instance : instances) std::printf("%d", launched == instance);
        std::printf(" ");
    };
    float a; double b; both(&a, &b);
    """
    words = printed(source, main, tmp_path).replace("<<<1 1 1, 1 1 1, 0, 0>>>", "").split()
    assert words == ["100", "010", "001"]


def test_overloads_are_told_apart(tmp_path: Path) -> None:
    source = """
    __global__ void k(int x) { }
    __global__ void k(float x) { }
    void run() { k<<<1, 1>>>(1); k<<<1, 1>>>(1.0f); }
    """
    main = 'look = [] { std::printf("%d ", launched == (void*)(void (*)(float))&k); }; run();'
    assert printed(source, main, tmp_path).replace("<<<1 1 1, 1 1 1, 0, 0>>>", "").split() == ["0", "1"]


@pytest.mark.parametrize(
    ("parameters", "call", "seen", "expected"),
    [
        ("int, float y", "1, 2", "*(int*)arguments[0], *(float*)arguments[1]", "1 2"),
        ("int a = 5, float y = 6", "4", "*(int*)arguments[0], *(float*)arguments[1]", "4 6"),
        ("float4 v, int n", "float4{1, 2, 3, 4}, 9", "((float4*)arguments[0])->w, *(int*)arguments[1]", "4 9"),
        ("int (*f)(int), int n", "twice, 3", "(*(int (**)(int))arguments[0])(21), *(int*)arguments[1]", "42 3"),
        ("float (*rows)[4], int n", "table, 3", "(*(float (**)[4])arguments[0])[1][2], *(int*)arguments[1]", "6 3"),
        ("const __grid_constant__ dim3 d, int n", "dim3(5, 6), 1", "((dim3*)arguments[0])->y, *(int*)arguments[1]", "6 1"),
        ("const float* __restrict__ x, int n", "table[1], 1", "**(float**)arguments[0], *(int*)arguments[1]", "4 1"),
        ("int x[], int n", "list, 1", "(*(int**)arguments[0])[1], *(int*)arguments[1]", "8 1"),
        ("int = 5, float = 6", "", "*(int*)arguments[0], *(float*)arguments[1]", "5 6"),
        ("int[], int (*)(int)", "list, twice", "(*(int**)arguments[0])[0], (*(int (**)(int))arguments[1])(4)", "7 8"),
    ],
    ids=[
        "unnamed", "defaults", "struct", "function", "rows", "grid constant", "restrict", "array", "unnamed defaults",
        "unnamed array",
    ],
)  # fmt: skip
def test_parameters_of_every_form_arrive(tmp_path: Path, parameters: str, call: str, seen: str, expected: str) -> None:
    source = f"""
    int twice(int x) {{ return 2 * x; }}
    float table[3][4] = {{{{0, 1, 2, 3}}, {{4, 5, 6, 7}}}};
    int list[] = {{7, 8}};
    __global__ void k({parameters}) {{ }}
    void run() {{ k<<<1, 1>>>({call}); }}
    """
    first, second = seen.rsplit(", ", 1)
    main = f'look = [] {{ std::printf(" %g %g", (double)({first}), (double)({second})); }}; run();'
    assert printed(source, main, tmp_path).split(">>> ")[1] == expected


def test_a_pack_of_parameters_arrives(tmp_path: Path) -> None:
    source = """
    template <typename... T> __global__ void k(int n, T... rest) { }
    void run() { k<<<1, 1>>>(3, 1.5, 'x'); }
    """
    main = """
    look = [] { std::printf(" %d %g %c", *(int*)arguments[0], *(double*)arguments[1], *(char*)arguments[2]); };
    run();
    """
    assert printed(source, main, tmp_path).split(">>> ")[1] == "3 1.5 x"


@pytest.mark.parametrize(
    "launches",
    [
        "#define LAUNCH(kernel, ...) kernel<<<1, 2>>>(__VA_ARGS__)\nvoid run() { LAUNCH(k, 0, 1, 2); LAUNCH(k, 0, 3, 4); }",
        "void run() { auto f = [] { k<<<1, 2>>>(0, 1, 2); }; f(); f(); }",
        "void run() { for (int i = 0; i < 2; ++i) k<<<1, 2>>>(0, i, 2); }",
        "void run() { if (true) k<<<1, 2>>>(0, 1, 2); else k<<<8, 8>>>(0, 1, 2); (k)<<<1, 2>>>(0, 1, 2); }",
        "template <class F> void twice(F f) { f(); f(); }\nvoid run() { twice([&] { k<<<1, 2>>>(0, 1, 2); }); }",
    ],
    ids=["macro", "lambda", "loop", "branch", "template"],
)
def test_launches_are_found_wherever_they_stand(tmp_path: Path, launches: str) -> None:
    assert printed(KERNEL + launches, "run();", tmp_path) == "<<<1 1 1, 2 1 1, 0, 0>>>" * 2


def test_device_code_is_not_shown_to_the_host_compiler(tmp_path: Path) -> None:
    source = """
    __device__ float half_of(float x) { asm("nonsense %0;" : "=f"(x)); return __shfl_down_sync(~0u, x, 1) / 2; }
    __device__ float only = 1;
    struct Acc {
        float total; int n;
        Acc(int n) { this->n = n; }
        __device__ Acc(float x) { total = __expf(x); n = threadIdx.x; }
        __device__ void add(float x) { atomicAdd(&total, x); }
        int size() const { return n; }
    };
    __global__ void k(Acc a) { __shared__ float s[32]; s[threadIdx.x] = half_of(a.total); __syncthreads(); }
    int run() { Acc a(6); k<<<1, 1>>>(a); return a.size(); }
    """
    main = 'look = [] { std::printf(" %d", ((Acc*)arguments[0])->n); }; std::printf(" %d", run());'
    assert printed(source, main, tmp_path).split(">>> ")[1] == "6 6"


def test_what_both_sides_use_stays(tmp_path: Path) -> None:
    source = """
    #define SIZE 4
    constexpr int square(int x) { return x * x; }
    __host__ __device__ inline int up(int n, int by) { return (n + by - 1) / by; }
    enum Mode { kSum, kMax };
    const int kBlock = 32;
    __global__ void k(int n) { if (n < square(SIZE)) return; }
    void run(int n) { k<<<up(n, kBlock), kBlock>>>(square(SIZE) + kMax); }
    """
    main = 'look = [] { std::printf(" %d", *(int*)arguments[0]); }; run(100);'
    assert printed(source, main, tmp_path) == "<<<4 1 1, 32 1 1, 0, 0>>> 17"


def test_device_variables_have_a_shadow_of_their_size_on_the_host(tmp_path: Path) -> None:
    source = """
    __constant__ float weights[8];
    __device__ int counter = 3;
    static __device__ double table[2][2];
    __global__ void k() { }
    """
    main = 'std::printf("%zu %zu %zu", sizeof weights, sizeof counter, sizeof table);'
    assert printed(source, main, tmp_path) == "32 4 32"
    symbols = subprocess.run(["nm", "-f", "sysv", tmp_path / "unit"], capture_output=True, text=True, check=True).stdout
    sections = {row.split("|")[0].strip(): row.split("|")[-1].strip() for row in symbols.splitlines() if "|" in row}
    assert (sections["weights"], sections["counter"]) == (".dice_constant", ".dice_device")


def test_lines_and_files_are_those_of_the_source(tmp_path: Path) -> None:
    source = "\n\nint here() { return __LINE__; }\nconst char* file() { return __FILE__; }\n"
    source += "int\nthere() {\n return __LINE__; }\n"
    unit = render_host(split_source(source), "cuda.cu", first_line=4)
    main = 'int main() { std::printf("%d %d %s", here(), there(), file()); }'
    assert run_host(unit + main, tmp_path) == "6 10 cuda.cu"


def test_names_of_kernels_are_those_of_the_device_side(tmp_path: Path) -> None:
    source = """
    extern "C" __global__ void plain(int n) { }
    namespace { __global__ void hidden(int n) { } }
    namespace a { namespace b { __global__ void inner(int n) { } } }
    void run() { plain<<<1, 1>>>(1); hidden<<<1, 1>>>(1); a::b::inner<<<1, 1>>>(1); }
    """
    split = split_source(source)
    kernels = [item for item in split.items if item.kind == "kernel"]
    assert [scoped_name(item) for item in kernels] == ["plain", "dice_unnamed::hidden", "a::b::inner"]
    unit = render_host(split, "cuda.cu")
    assert compile_host(unit, tmp_path, "-c").returncode == 0
    table = subprocess.run(["nm", "-C", tmp_path / "unit"], capture_output=True, text=True, check=True).stdout
    for name in ("plain", "dice_unnamed::hidden(int)", "a::b::inner(int)"):
        assert f" T {name}\n" in table


def test_a_module_becomes_a_table_when_its_name_is_given() -> None:
    module = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }'
    source = f"int f(int x) {{ return x; }}\nnamespace py = pybind11;\n{module}"
    table = host(source, module="mine")
    assert "PyInit_mine" in table
    assert "PYBIND11_MODULE" not in table
    assert "pybind11" not in table
    assert module in host(source)


DEVICE_FUNCTION = "__device__ float op(float x) { return __expf(x); }\n"


def test_a_device_function_may_be_named_as_a_template_argument_and_not_called(tmp_path: Path) -> None:
    named = """
    template <float (*F)(float)> __global__ void k(int n) { F(n); }
    void run() { k<op><<<1, 1>>>(3); }
    """
    assert printed(DEVICE_FUNCTION + named, "run();", tmp_path) == "<<<1 1 1, 1 1 1, 0, 0>>>"
    called = compile_host(host(DEVICE_FUNCTION + "float run() { return op(1); }") + "int main() { run(); }", tmp_path)
    assert called.returncode != 0
    assert DEVICE_CALL in called.stderr


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("__global__ int k() { return 1; }", "does not return void"),
        ("__global__ void k(int& x) { }", "a reference"),
        ("__global__ void k(int x, ...) { }", "variable arguments"),
        ("template <typename> __global__ void k(int x) { }", "unnamed template parameter"),
        ("__managed__ float x;", "managed"),
        ("extern __device__ float x;", "defined elsewhere"),
        ("__constant__ float const x = 1;", "unusual device variable"),
        ("template <class T> __device__ T x;", "unusual device variable"),
        ("#ifdef __CUDA_ARCH__\n#endif", "which compiler or architecture"),
        ("#if defined(__CUDACC__)\nint x;\n#endif", "which compiler or architecture"),
        ("#include <cub/cub.cuh>\nvoid run() { cub::DeviceReduce::Sum(0, 0); }", "cub"),
        ("void run() { auto g = cooperative_groups::this_grid(); }", "cooperative_groups"),
        ("__device__ auto op(float x) { return x; }\nvoid run() { auto f = op; }", "must be deduced"),
    ],
)
def test_what_only_nvcc_can_say_is_left_to_it(source: str, reason: str) -> None:
    with pytest.raises(SplitRefused, match=reason):
        host(source)
