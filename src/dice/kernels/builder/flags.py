"""Compiler and linker flags of a request: which are understood, which are left to stock, which are refused.

Candidates are hostile, and PyTorch pastes their flags into a shell command. So flags are an allow-list:
- understood: the fast routes give them to the right compiler;
- harmless but not understood (`-fno-plt`, `--default-stream=per-thread`): `SplitRefused`, the stock build takes them;
- all others (anything that writes elsewhere, loads code, or reaches the shell): `FlagForbidden`, a compile error.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dice.kernels.records.extension import ExtensionRequest
from dice.kernels.source.lexer import SplitRefused


class FlagForbidden(Exception):
    """A flag that no candidate may use; the message says which and why."""


@dataclass
class BuildFlags:
    """The understood flags of a request, by who gets them."""

    main: list[str] = field(default_factory=list)
    """g++, for main.cpp."""
    host: list[str] = field(default_factory=list)
    """g++, for the host part of the .cu."""
    device: list[str] = field(default_factory=list)
    """nvcc, for the device part."""
    architectures: list[str] = field(default_factory=list)
    """`-gencode`, `-arch` and `-code` flags; when given, PyTorch adds none of its own."""
    link: list[str] = field(default_factory=list)
    main_macros: list[str] = field(default_factory=list)
    """`#define` and `#undef` lines for main.cpp."""
    host_macros: list[str] = field(default_factory=list)
    """The same for the host part of the .cu (nvcc takes them as flags)."""


_SHELL = re.compile(r"[\n\r;&|`$<>(){}\\*?~#!]")
_DANGEROUS = re.compile(
    r"""@ | -o | --output | -B | -specs | -wrapper | -fplugin | -fdump | -fprofile | -fauto-profile | -fmodule | -fopt-info
    | -fsave-opt | -fuse-ld | -fdiagnostics | -fself-test | -ftest-coverage | --coverage | -flto-partition | -ffile
    | -save-temps | --save-temps | -M | -MD | -MF | -imacros | -include | -x | -ccbin | --compiler-bindir | -odir
    | --keep | -keep | -dryrun | --dryrun | -optf | --options-file | -dlink | -lib | -link | -run | -cudart | -ldir
    | --run | --input-drive | --clean | -time | --dump | -Wa | -Wp | -Xassembler | -Xpreprocessor | -T | -dump | -aux
    | -pipe= | --param= | -no-integrated | -target | --sysroot | -isysroot | -iprefix | -nvvm | --libdevice | -ldir
    | -Xlinker | -Xnvlink | -Xfatbin | -Xcudafe | -Xcicc | --prec-l | -gen-opt | --static-global""",
    re.VERBOSE,
)
_OPTIMIZATION = re.compile(r"-O[0-3s]?$|-Ofast$")
_DEFINE = re.compile(r"-D\s*([A-Za-z]\w*)(?:=([\w.+-]*))?$")
_HALF_MACRO = re.compile(r"-[DU]\s*(__CUDA_NO_(?:HALF|HALF2|BFLOAT16|BFLOAT162)_(?:OPERATORS|CONVERSIONS)__)(?:=1)?$")
_HEADER_MACRO = re.compile(r"DEBUG|AT_|TORCH_|C10_|USE_|CUDA_|PYBIND11_|NO_|WITH_|FMT_|GLOG|BUILD_|FBCODE|HAVE_|STRIP")
_WARNING = re.compile(r"-W(?!l,|a,|p,)[\w+=-]*$|-w$|-pedantic$|--disable-warnings$")
_HOST_CODE = re.compile(
    r"-ffast-math$|-funroll-loops$|-march=[\w-]+$|-mtune=[\w-]+$|-mavx\w*$|-mfma$|-msse[\w.]*$|-fopenmp$|-fno-math-errno$"
    r"|-fstrict-aliasing$|-fno-strict-aliasing$|-finline-functions$|-ftree-vectorize$|-fvisibility=\w+$|-m64$"
)
_STANDARD = re.compile(r"(?:-std=|--std=|--std\s|-std\s)(c|gnu)\+\+(\w\w)$")
_HARMLESS = re.compile(r"-(?:f|m|g|W|O)[\w+=.,-]*$|--?[a-z][\w-]*(?:=[\w.,+-]*)?$")
_DROPPED = re.compile(
    r"-fPIC$|-fpic$|-g\d?$|-ggdb\d?$|-pipe$|-pthread$|-lineinfo$|--generate-line-info$|-m64$|-v$|--verbose$"
)
_DEVICE = re.compile(
    r"""--?use_fast_math | --?(?:fmad|ftz|prec-div|prec-sqrt)=(?:true|false|0|1) | --?maxrregcount=\d+
    | --expt-relaxed-constexpr | -expt-relaxed-constexpr | --(?:expt-)?extended-lambda | -(?:expt-)?extended-lambda
    | --extra-device-vectorization | --?restrict | -lineinfo | --generate-line-info | -w | --disable-warnings
    | --?(?:diag-suppress|diag_suppress)=[\d,]+ | --Wno-deprecated-gpu-targets | -Wno-deprecated-gpu-targets
    | --source-in-ptx | -src-in-ptx""",
    re.VERBOSE,
)
_DEVICE_IGNORED = re.compile(
    r"--?(?:threads|t|split-compile)=?\d*$|--?res-usage$|--resource-usage$|-v$|--verbose$|-l(?!ib$|ink$)\w+$|-fPIC$|-fpic$|-g$|-c$|-m64$"
)
_PTXAS = re.compile(
    r"(?:-O[0-3]|-v|--verbose|-w|-dlcm=\w+|-dscm=\w+|--?def-(?:load|store)-cache=\w+|--?warn-[\w-]+|--?allow-expensive-optimizations"
    r"(?:=\w+)?|--?maxrregcount=\d+|--?suppress-[\w-]+)$"
)
_WITH_VALUE = re.compile(
    r"(-Xptxas|--ptxas-options|-Xcompiler|--compiler-options|-maxrregcount|--maxrregcount|-gencode|--generate-code|-arch"
    r"|--gpu-architecture|-code|--gpu-code|--threads|-t|-diag-suppress|--diag-suppress|-D|-U|-std|--std|-O|-I|-L|-l"
    r"|--fmad|-fmad|--ftz|-ftz|-prec-div|--prec-div|-prec-sqrt|--prec-sqrt)$"
)
_ARCHITECTURE = re.compile(
    r"(-gencode|--generate-code|-arch|--gpu-architecture|-code|--gpu-code)[= ](?:arch=)?[\w,=\[\]]+$"
)
_LINK = re.compile(
    r"-l:?[\w.+-]+$|-L[\w./+ -]+$|-Wl,-rpath,[\w./+,-]+$|-Wl,--(?:no-)?as-needed$|-pthread$|-fopenmp$|-s$|-O\d$"
)


def read_flags(request: ExtensionRequest) -> BuildFlags:
    """Sort the flags of a request. Raises FlagForbidden or SplitRefused."""
    flags = BuildFlags()
    for word in _words(request.extra_cflags, with_value=re.compile(r"(-D|-U|-I|-L|-l|-O|-W)$")):
        _main_flag(word, flags)
    if request.cuda_sources or any(file.name.endswith((".cu", ".cuh")) for file in request.files):
        for word in _words(request.extra_cuda_cflags, with_value=_WITH_VALUE):
            _cuda_flag(word, flags)
    for word in _words(request.extra_ldflags, with_value=re.compile(r"(-L|-l)$")):
        if not _LINK.match(word):
            raise _rejection(word)
        flags.link.append(word)
    return flags


def check_forbidden(request: ExtensionRequest) -> None:
    """Raise FlagForbidden if any flag, or the extension's name, may reach neither the fast routes nor stock."""
    if not re.fullmatch(r"[\w.+-]+", request.name):
        raise FlagForbidden(f"extension name '{request.name[:80]}' has characters that a shell or a path would act on")
    try:
        read_flags(request)
    except SplitRefused:
        return


def shell_words(flags: Iterable[str]) -> list[str]:
    """The words that a shell would make of the flags. Raises FlagForbidden for what a shell would act on."""
    words: list[str] = []
    for flag in flags:
        if _SHELL.search(flag):
            raise FlagForbidden(f"flag '{flag[:80]}' has characters that a shell would act on")
        try:
            words += shlex.split(flag)
        except ValueError as error:
            raise FlagForbidden(f"flag '{flag[:80]}' cannot be read ({error})") from error
    return words


def _words(flags: Iterable[str], with_value: re.Pattern[str]) -> Iterator[str]:
    """The words a shell would see, a flag and its separate value joined by a space."""
    words = shell_words(flags)
    i = 0
    while i < len(words):
        if (
            with_value.match(words[i])
            and i + 1 < len(words)
            and not (words[i] == "-O" and words[i + 1].startswith("-"))
        ):
            glue = "" if words[i] in ("-D", "-U", "-I", "-L", "-l", "-O", "-W") else " "
            yield words[i] + glue + words[i + 1]
            i += 1
        else:
            yield words[i]
        i += 1


def _rejection(word: str) -> Exception:
    if _DANGEROUS.match(word) or not _HARMLESS.match(word):
        return FlagForbidden(f"flag '{word[:80]}' is not allowed here")
    return SplitRefused(f"flag {word[:80]}")


def _main_flag(word: str, flags: BuildFlags) -> None:
    if _DROPPED.match(word) or _WARNING.match(word) or word == "-use_fast_math":
        return  # nvcc's flag with one hyphen is for g++ `-u se_fast_math`, which only a linker acts on
    if _OPTIMIZATION.match(word) or _HOST_CODE.match(word) or _STANDARD.match(word):
        flags.main.append(word)
    elif word.startswith(("-I", "-L")) or re.match(r"-l[\w+-]+$", word):
        return  # include folders come from the request's own field; libraries mean nothing to a compiler
    elif not _macro(word, flags.main_macros):
        raise _rejection(word)


def _macro(word: str, lines: list[str]) -> bool:
    match = _DEFINE.match(word)
    if match is None:
        return False
    if _HEADER_MACRO.match(match.group(1)):
        raise SplitRefused(f"flag {word} may change what the headers mean")
    lines.append(f"#define {match.group(1)} {'1' if match.group(2) is None else match.group(2)}")
    if match.group(1) == "NDEBUG":  # it drops PyTorch's debug checks and `assert`, which is made anew when asked for
        lines.append("#include <cassert>")
    return True


def _cuda_flag(word: str, flags: BuildFlags) -> None:
    if _ARCHITECTURE.match(word):
        flags.architectures += word.split(" ")
    elif match := _HALF_MACRO.match(word):
        flags.device.append(word)
        flags.host_macros.append(f"#{'define' if word[1] == 'D' else 'undef'} {match.group(1)}")
    elif _OPTIMIZATION.match(word) and word not in ("-Os", "-Ofast"):
        flags.device.append(word)
        flags.host.append(word)
    elif match := _STANDARD.match(word):
        standard = f"-std={match.group(1)}++{match.group(2)}"
        flags.device.append(standard)
        flags.host.append(standard)
    elif match := re.match(r"(?:-Xptxas|--ptxas-options)[ =](.*)$", word):
        for part in match.group(1).split(","):
            if not _PTXAS.match(part):
                raise _rejection(part)
        flags.device += [f"--ptxas-options={match.group(1)}"]
    elif match := re.match(r"(?:-Xcompiler|--compiler-options)[ =](.*)$", word):
        for part in re.split(r"[ ,]", match.group(1).strip("'\"")):
            _host_flag(part, flags)
    elif _DEVICE.fullmatch(word) or re.match(
        r"--?(maxrregcount|fmad|ftz|prec-div|prec-sqrt|diag-suppress) [\w,]+$", word
    ):
        flags.device += word.split(" ")
    elif _DEVICE_IGNORED.match(word) or re.match(r"--?(threads|t) \d+$", word) or word.startswith(("-I", "-L")):
        return
    elif _WARNING.match(word):
        raise SplitRefused(f"flag {word}")
    elif not _macro(word, flags.host_macros):
        raise _rejection(word)
    else:
        flags.device.append(word)


def _host_flag(word: str, flags: BuildFlags) -> None:
    if not word or _DROPPED.match(word) or _WARNING.match(word):
        return
    if _OPTIMIZATION.match(word) or _HOST_CODE.match(word):
        flags.host.append(word)
    elif not _macro(word, flags.host_macros):
        raise _rejection(word)
