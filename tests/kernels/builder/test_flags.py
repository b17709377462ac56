"""Flags of a candidate: who gets which, what only stock takes, and what nobody may give."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from extension_requests import inline

from dice.kernels.builder.flags import BuildFlags, read_flags, refusal, shell_words
from dice.kernels.builder.harmful_flags import FlagRefused
from dice.kernels.records.extension import ExtensionRequest
from dice.kernels.source.lexer import SplitRefused


def for_main(*words: str) -> BuildFlags:
    return read_flags(inline(extra_cflags=list(words)))


def for_cuda(*words: str) -> BuildFlags:
    return read_flags(inline(cuda="int x;", extra_cuda_cflags=list(words)))


def flagged(name: str, flag: str) -> ExtensionRequest:
    arguments: dict[str, Any] = {name: [flag]}
    return inline(cuda="int x;", **arguments)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-O3"], BuildFlags(main=["-O3"])),
        (["-O3 -march=native"], BuildFlags(main=["-O3", "-march=native"])),
        (["-O", "2"], BuildFlags(main=["-O2"])),
        (["-std=c++20"], BuildFlags(main=["-std=c++20"])),
        (["-Wall", "-Wextra", "-w"], BuildFlags()),
        (["-fPIC", "-g", "-pipe", "-MMD", "-save-temps", "-fdiagnostics-color=always"], BuildFlags()),
        (["-D_USE_MATH_DEFINES"], BuildFlags(main_macros=["#define _USE_MATH_DEFINES 1"])),
        (["-UX"], BuildFlags(main_macros=["#undef X"])),
        (
            ["-I/opt/mine", "-isystem /opt/theirs", "-Ilocal", "-L/opt/lib"],
            BuildFlags(folders=["/opt/mine", "/opt/theirs"]),
        ),
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
        (["-D_USE_MATH_DEFINES"], BuildFlags(device=["-D_USE_MATH_DEFINES"], host_macros=["#define _USE_MATH_DEFINES 1"])),
        (["-I", "/opt/mine"], BuildFlags(device=["-I/opt/mine"], folders=["/opt/mine"])),
        (["-Xcudafe", "--diag_suppress=177"], BuildFlags(device=["-Xcudafe", "--diag_suppress=177"])),
        (["-Xfatbin -compress-all"], BuildFlags()),
    ],
)  # fmt: skip
def test_flags_of_the_cuda_sources_go_to_each_side_that_they_concern(words: list[str], expected: BuildFlags) -> None:
    assert for_cuda(*words) == expected


def test_libraries_go_to_the_linker() -> None:
    words = ["-lcublas", "-L/usr/local/cuda/lib64", "-Wl,-rpath,/usr/local/cuda/lib64", "/usr/lib/libz.so.1", "-l", "m"]
    assert read_flags(inline(extra_ldflags=words)).link == [*words[:4], "-lm"]


def test_cuda_flags_of_an_extension_without_cuda_are_not_read() -> None:
    """As for PyTorch, which gives them to nobody."""
    assert read_flags(inline(cuda=None, extra_cuda_cflags=["-fplugin=evil.so"])) == BuildFlags()


@pytest.mark.parametrize("words", [["-DX"], ["-DX="], ["-DX=3"], ["-D", "X=1.5f"], ["-DX=other"], ["-DX=(1<<4)"]])
def test_macros_mean_what_the_compiler_makes_of_the_flag(words: list[str]) -> None:
    def preprocessed(text: str, *flags: str) -> str:
        command = ["g++", "-E", "-P", "-x", "c++", *flags, "-"]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.strip()

    lines = for_main(*(f"'{word}'" for word in words)).main_macros  # as a shell is told to keep it whole
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
        *("-fopt-info-all=x", "-fsave-optimization-record", "-fself-test=x", "-MT", "-oevil"),
        *("-fprofile-use=/x", "-include/etc/passwd", "-imacros", "-include ../x.h", "-MF", "-fuse-ld=evil"),
        *("-Wa,-al=/x", "-Wp,-MD,/x", "-Xassembler", "--sysroot=/x", "-T", "-target"),
        *(
            "-ftest-coverage",
            "--coverage",
            "-aux-info",
            "-fdiagnostics-format=json-file",
            "x.o",
            "--unknown=/etc/passwd",
        ),
    ],
)
def test_what_writes_reads_or_loads_elsewhere_is_forbidden(word: str) -> None:
    for request in (inline(extra_cflags=[word]), flagged("extra_cuda_cflags", f"-Xcompiler {word}")):
        with pytest.raises(FlagRefused):
            read_flags(request)


@pytest.mark.parametrize(
    "word",
    [
        *(
            "-ccbin=/x/evil",
            "--compiler-bindir=/x",
            "-odir=/x",
            "--keep-dir=x",
            "-dryrun",
            "--options-file=x",
            "-optf=x",
        ),
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
        *("-dlink", "-lib", "-ccbin x", "--input-drive-prefix=x", "-Xcompiler=-fplugin=./evil.so", "-time=/x"),
    ],
)
def test_what_nvcc_would_write_or_call_elsewhere_is_forbidden(word: str) -> None:
    with pytest.raises(FlagRefused):
        for_cuda(word)


def test_a_harmful_flag_does_not_hide_behind_one_that_only_stock_takes() -> None:
    for words in (["-fno-plt", "-fplugin=evil.so"], ["-fplugin=evil.so", "-fno-plt"]):
        assert refusal(inline(extra_cflags=words)) == (
            "refused_flag",
            "flag '-fplugin=evil.so' is refused: it loads code into the compiler, or calls another program",
        )
    for words in (["-Xcompiler=-fno-plt,-B."], ["-Xptxas=--opt-level=3,-o,x"]):
        with pytest.raises(FlagRefused):
            for_cuda(*words)


def test_a_flag_is_not_taken_for_the_value_of_the_one_before() -> None:
    for word in ("-W", "-O", "-D", "-Werror"):
        with pytest.raises(FlagRefused, match="-B"):
            for_main(word, "-B.")


@pytest.mark.parametrize(
    "word",
    [
        *(
            "-Wl,--wrap=free",
            "-Wl,-T,x",
            "-Wl,-rpath,/x,--wrap=free",
            "-Wl,-rpath,/x,-T,x",
            "-Wl,--as-needed,-plugin,x",
        ),
        *("-Xlinker --wrap=free", "-Xlinker -plugin", "-Wl,--version-script=x", "-Wl,-dynamic-linker,/x", "-Wl,x.o"),
        *("-T x", "@rsp", "-Wl,-rpath,$ORIGIN", "x.o", "-o x", "/usr/lib/../x.so", "--for-linker=--wrap=free"),
    ],
)
def test_the_linker_gets_libraries_and_no_orders(word: str) -> None:
    with pytest.raises(FlagRefused):
        read_flags(inline(extra_ldflags=[word]))


@pytest.mark.parametrize(
    "flag",
    ["-O2; touch x", "-O2 && x", "`x`", "$(x)", "-DX=$HOME", "-O2\nx", "-O2 > x", "-O2 | x", "-DX='", "a*", "~/x"],
)
def test_what_a_shell_acts_on_is_forbidden_everywhere(flag: str) -> None:
    with pytest.raises(FlagRefused):
        shell_words([flag])
    for name in ("extra_cflags", "extra_cuda_cflags", "extra_ldflags"):
        found = refusal(flagged(name, flag))
        assert (found or [""])[0] == "refused_flag"


def test_a_shell_would_see_the_same_words() -> None:
    flags = ["-O3 -DX=1", "'-Xcompiler=-O1 -g'", r"-DNAME=\"a\"", "'-DSQUARE(x)=((x)*(x))'"]
    command = ["sh", "-c", f"printf '%s\\n' {' '.join(flags)}"]
    assert shell_words(flags) == subprocess.run(command, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("extra_cflags", "-fno-plt"),
        ("extra_cflags", "-Wl,--script=x"),  # nothing is linked with these
        ("extra_cflags", "-DTORCH_CHECK_EVERYTHING"),
        ("extra_cuda_cflags", "--default-stream=per-thread"),
        ("extra_cuda_cflags", "-Wall"),
        ("extra_cuda_cflags", "-G"),
        ("extra_cuda_cflags", "-include cuda_fp16.h"),
        ("extra_cuda_cflags", "-Werror all-warnings"),
        ("extra_cuda_cflags", "-Xcompiler=-fno-plt"),
        ("extra_cflags", "'-DSQUARE(x)=((x)*(x))'"),
        ("extra_cflags", "-D_GLIBCXX_USE_CXX11_ABI=0"),
        ("extra_cflags", "-ffile-prefix-map=/a=/b"),
        ("extra_cflags", "--param max-inline-insns-single=100"),
        ("extra_cflags", "-x c++"),
        ("extra_ldflags", "-Wl,-z,now,--build-id=sha1,-O1"),
        ("extra_ldflags", "-Xlinker --gc-sections"),
        ("extra_ldflags", "-fuse-ld=gold"),
        ("extra_ldflags", "-z now"),
    ],
)
def test_harmless_flags_that_are_not_understood_are_left_to_stock(name: str, word: str) -> None:
    request = flagged(name, word)
    with pytest.raises(SplitRefused):
        read_flags(request)
    assert refusal(request) is None


@pytest.mark.parametrize("name", ["a b", "a;b", "../a", "$(x)", "a/b", ""])
def test_the_name_of_an_extension_is_pasted_into_commands_too(name: str) -> None:
    found = refusal(inline(name=name))
    assert found is not None
    assert found[0] == "compile_error"
    assert "name" in found[1]
    assert refusal(inline(name="my-kernel_v1.2+x")) is None
