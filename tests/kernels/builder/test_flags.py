"""Flags of a candidate: who gets which, what only stock takes, and what nobody may give."""

from __future__ import annotations

import subprocess

import pytest
from extension_requests import inline

from dice.kernels.builder.flags import BuildFlags, FlagForbidden, check_forbidden, read_flags, shell_words
from dice.kernels.source.lexer import SplitRefused


def for_main(*words: str) -> BuildFlags:
    return read_flags(inline(extra_cflags=list(words)))


def for_cuda(*words: str) -> BuildFlags:
    return read_flags(inline(cuda="int x;", extra_cuda_cflags=list(words)))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-O3"], BuildFlags(main=["-O3"])),
        (["-O3 -march=native"], BuildFlags(main=["-O3", "-march=native"])),
        (["-O", "2"], BuildFlags(main=["-O2"])),
        (["-std=c++20"], BuildFlags(main=["-std=c++20"])),
        (["-Wall", "-Wextra", "-w"], BuildFlags()),
        (["-fPIC", "-g", "-pipe"], BuildFlags()),
    ],
)
def test_flags_of_the_cpp_sources_go_to_their_compiler(words: list[str], expected: BuildFlags) -> None:
    assert for_main(*words) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-O2"], BuildFlags(host=["-O2"], device=["-O2"])),
        (["-std=c++17"], BuildFlags(host=["-std=c++17"], device=["-std=c++17"])),
        (["--std", "c++17"], BuildFlags(host=["-std=c++17"], device=["-std=c++17"])),
        (["--use_fast_math"], BuildFlags(device=["--use_fast_math"])),
        (["-use_fast_math"], BuildFlags(device=["-use_fast_math"])),
        (["-maxrregcount=32"], BuildFlags(device=["-maxrregcount=32"])),
        (["-maxrregcount", "32"], BuildFlags(device=["-maxrregcount", "32"])),
        (["--fmad=false"], BuildFlags(device=["--fmad=false"])),
        (["-Xptxas", "-O3,-v"], BuildFlags(device=["--ptxas-options=-O3,-v"])),
        (["-Xcompiler", "-O1"], BuildFlags(host=["-O1"])),
        (["-Xcompiler=-O1,-ffast-math"], BuildFlags(host=["-O1", "-ffast-math"])),
        (["-Xcompiler '-O1 -fopenmp'"], BuildFlags(host=["-O1", "-fopenmp"])),
        (["-Xcompiler", "-Wall"], BuildFlags()),
        (["-gencode", "arch=compute_90,code=sm_90"], BuildFlags(architectures=["-gencode", "arch=compute_90,code=sm_90"])),
        (["-arch=sm_90"], BuildFlags(architectures=["-arch=sm_90"])),
        (["--threads", "4"], BuildFlags()),
        (
            ["-U__CUDA_NO_HALF_OPERATORS__"],
            BuildFlags(
                device=["-U__CUDA_NO_HALF_OPERATORS__"], host_macros=["#undef __CUDA_NO_HALF_OPERATORS__"]
            ),
        ),
        (["-DN=4"], BuildFlags(device=["-DN=4"], host_macros=["#define N 4"])),
    ],
)  # fmt: skip
def test_flags_of_the_cuda_sources_go_to_each_side_that_they_concern(words: list[str], expected: BuildFlags) -> None:
    assert for_cuda(*words) == expected


def test_libraries_go_to_the_linker() -> None:
    words = ["-lcublas", "-L/usr/local/cuda/lib64", "-Wl,-rpath,/usr/local/cuda/lib64", "-l", "m"]
    assert read_flags(inline(extra_ldflags=words)).link == [*words[:3], "-lm"]


def test_cuda_flags_of_an_extension_without_cuda_are_not_read() -> None:
    """As for PyTorch, which gives them to nobody."""
    assert read_flags(inline(cuda=None, extra_cuda_cflags=["-fplugin=evil.so"])) == BuildFlags()


@pytest.mark.parametrize("words", [["-DX"], ["-DX="], ["-DX=3"], ["-D", "X=1.5f"], ["-DX=other"]])
def test_macros_mean_what_the_compiler_makes_of_the_flag(words: list[str]) -> None:
    def preprocessed(text: str, *flags: str) -> str:
        command = ["g++", "-E", "-P", "-x", "c++", *flags, "-"]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.strip()

    lines = for_main(*words).main_macros
    assert preprocessed("\n".join([*lines, "begin X end"])) == preprocessed("begin X end", *words)


def test_without_debug_checks_assert_is_still_there() -> None:
    """`-DNDEBUG` of PyTorch's flags would be lost: the macro is defined after the headers."""
    assert for_main("-DNDEBUG").main_macros == ["#define NDEBUG 1", "#include <cassert>"]


@pytest.mark.parametrize(
    "word",
    [
        *(
            "@options",
            "-o/tmp/x",
            "-B.",
            "-specs=mine",
            "-wrapper",
            "-fplugin=evil.so",
            "-fplugin-arg-evil-x=y",
            "-fdump-tree-all",
            "-fprofile-generate",
            "-fauto-profile=x",
            "-fmodules-ts",
            "-fmodule-mapper=x",
        ),
        *("-fopt-info-all=x", "-fsave-optimization-record", "-fself-test=x", "-ffile-prefix-map=a=b", "-MMD"),
        *("-fprofile-use=/x", "-include/etc/passwd", "-imacros", "-save-temps", "-MD", "-MF", "-x", "-fuse-ld=evil"),
        *("-Wa,-al=/x", "-Wp,-MD,/x", "-Xlinker", "-Xassembler", "--sysroot=/x", "-T", "-target"),
        *("-ftest-coverage", "--coverage", "-aux-info", "-fdiagnostics-format=json-file", "-pipe=x", "--param=x"),
    ],
)
def test_what_writes_reads_or_loads_elsewhere_is_forbidden(word: str) -> None:
    for arguments in ({"extra_cflags": [word]}, {"cuda": "int x;", "extra_cuda_cflags": [f"-Xcompiler {word}"]}):
        with pytest.raises(FlagForbidden):
            read_flags(inline(**arguments))


@pytest.mark.parametrize(
    "word",
    [
        *("-ccbin=/x/evil", "--compiler-bindir=/x", "-odir=/x", "--keep", "-dryrun", "--options-file=x", "-optf=x"),
        *(
            "-run",
            "-link",
            "-Xcudafe=--x",
            "-Xfatbin=-x",
            "-Xnvlink=-x",
            "-Xptxas=-o,/x",
            "-Xptxas=-O3,-o,x",
            "-Xptxas=--output-file=/x",
        ),
        *("-dlink", "-lib", "-cudart=none", "--input-drive-prefix=x", "-Xcompiler=-fplugin=./evil.so", "-time=/x"),
    ],
)
def test_what_nvcc_would_write_or_call_elsewhere_is_forbidden(word: str) -> None:
    with pytest.raises(FlagForbidden):
        for_cuda(word)


@pytest.mark.parametrize("word", ["-Wl,--wrap=free", "-Wl,-T,x", "-T x", "@rsp", "-Wl,-rpath,$ORIGIN", "x.o", "-o x"])
def test_the_linker_gets_libraries_and_nothing_else(word: str) -> None:
    with pytest.raises((FlagForbidden, SplitRefused)):
        read_flags(inline(extra_ldflags=[word]))


@pytest.mark.parametrize(
    "flag",
    ["-O2; touch x", "-O2 && x", "`x`", "$(x)", "-DX=$HOME", "-O2\nx", "-O2 > x", "-O2 | x", "-DX='", "a*", "~/x"],
)
def test_what_a_shell_acts_on_is_forbidden_everywhere(flag: str) -> None:
    with pytest.raises(FlagForbidden):
        shell_words([flag])
    for name in ("extra_cflags", "extra_cuda_cflags", "extra_ldflags"):
        with pytest.raises(FlagForbidden):
            check_forbidden(inline(cuda="int x;", **{name: [flag]}))


def test_a_shell_would_see_the_same_words() -> None:
    assert shell_words(["-O3 -DX=1", "'-Xcompiler=-O1 -g'"]) == ["-O3", "-DX=1", "-Xcompiler=-O1 -g"]


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("extra_cflags", "-fno-plt"),
        ("extra_cflags", "-Wl,--script=x"),  # nothing is linked with these
        ("extra_cflags", "-DTORCH_CHECK_EVERYTHING"),
        ("extra_cuda_cflags", "--default-stream=per-thread"),
        ("extra_cuda_cflags", "-Wall"),
    ],
)
def test_harmless_flags_that_are_not_understood_are_left_to_stock(name: str, word: str) -> None:
    request = inline(cuda="int x;", **{name: [word]})
    with pytest.raises(SplitRefused):
        read_flags(request)
    check_forbidden(request)


@pytest.mark.parametrize("name", ["a b", "a;b", "../a", "$(x)", "a/b", ""])
def test_the_name_of_an_extension_is_pasted_into_commands_too(name: str) -> None:
    with pytest.raises(FlagForbidden, match="name"):
        check_forbidden(inline(name=name))
    check_forbidden(inline(name="my-kernel_v1.2+x"))
