"""Compiler and linker flags of a request: which are understood, which are left to stock, which are refused.

Candidates are hostile, and PyTorch pastes their flags into a shell command. A flag that PyTorch's own build takes is taken,
unless it can do harm:
- understood: the fast routes give it to the right compiler;
- harmless but not understood (`-fno-plt`, `--default-stream=per-thread`): `SplitRefused`, the stock build takes it;
- harmful (harmful_flags.py), or something that a shell would act on: `FlagRefused`, the verdict `refused_flag`.
"""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from dice.kernels.builder.harmful_flags import FlagRefused, harm, steers_linker
from dice.kernels.records.extension import BuildStatus, ExtensionRequest
from dice.kernels.source.lexer import SplitRefused


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
    folders: list[str] = field(default_factory=list)
    """Absolute folders that hold headers, for g++."""


_SHELL = re.compile(r"[\n\r;&|`$<>(){}\\*?~#!]")
_ALWAYS_SHELL = re.compile(r"[\n\r`$]")
"""What a shell, or ninja before it, acts on inside of quotes too."""
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.")
_OPTIMIZATION = re.compile(r"-O[0-3s]?$|-Ofast$")
_MACRO = re.compile(r"-([DU])\s*([A-Za-z_]\w*)(?:=([\w.+*<>() \":,-]*))?$")
_FREE_MACROS = frozenset({"_USE_MATH_DEFINES", "_GNU_SOURCE"})
"""Names that begin as the headers' own do, and change nothing in them: of other systems, or always defined."""
_HALF_MACRO = re.compile(r"-[DU]\s*(__CUDA_NO_(?:HALF|HALF2|BFLOAT16|BFLOAT162)_(?:OPERATORS|CONVERSIONS)__)(?:=1)?$")
_HEADER_MACRO = re.compile(r"DEBUG|AT_|TORCH_|C10_|USE_|CUDA_|PYBIND11_|NO_|WITH_|FMT_|GLOG|BUILD_|FBCODE|HAVE_|STRIP")
_WARNING = re.compile(r"-W(?!l,|a,|p,)[\w+=-]*$|-w$|-pedantic$|--disable-warnings$")
_HOST_CODE = re.compile(
    r"-ffast-math$|-funroll-loops$|-march=[\w-]+$|-mtune=[\w-]+$|-mavx\w*$|-mfma$|-msse[\w.]*$|-fopenmp$|-fno-math-errno$"
    r"|-fstrict-aliasing$|-fno-strict-aliasing$|-finline-functions$|-ftree-vectorize$|-fvisibility=\w+$|-m64$"
)
_STANDARD = re.compile(r"(?:-std=|--std=|--std\s|-std\s)(c|gnu)\+\+(\w\w)$")
_DROPPED = re.compile(
    r"-fPIC$|-fpic$|-g[0-3]?$|-ggdb[0-3]?$|-pipe$|-pthread$|-lineinfo$|--generate-line-info$|-m64$|-v$|--verbose$"
    r"|-M(?:M?D|P)$|--?save-temps(?:=\w+)?$|--?keep$|-f(?:no-)?diagnostics-(?:color|show)[\w-]*(?:=\w+)?$|-fmessage-length=\d+$"
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
    r"--?(?:threads|t|split-compile)[= ]?\d*$|-Xfatbin[= ]--?compress-all$"
    r"|--?res-usage$|--resource-usage$|-v$|--verbose$|-l(?!ib$|ink$)\w+$|-fPIC$|-fpic$|-g$|-c$|-m64$"
)
_PTXAS = re.compile(
    r"(?:-O[0-3]|-v|--verbose|-w|-dlcm=\w+|-dscm=\w+|--?def-(?:load|store)-cache=\w+|--?warn-[\w-]+|--?allow-expensive-optimizations"
    r"(?:=\w+)?|--?maxrregcount=\d+|--?suppress-[\w-]+)$"
)
_PASSED_ON = re.compile(r"(-X[a-z]+|--(?:ptxas|compiler|linker|nvlink|archive|cudafe|fatbin)-options)$")
"""Flags whose value is a word for another tool, with or without hyphens."""
_WITH_VALUE = re.compile(
    r"(-D|-U|-O|-I|-L|-l|-isystem|-iquote|-idirafter|--?include|--?imacros|--pre-include|-x|--param|-std|--std|-z|-u|-e|-h|-soname)$"
)
_WITH_VALUE_FOR_NVCC = re.compile(
    r"(-maxrregcount|--maxrregcount|-gencode|--generate-code|-arch|--gpu-architecture|-code|--gpu-code|--threads|-t"
    r"|--?split-compile|--?fmad|--?ftz|--?prec-div|--?prec-sqrt|--?diag-(?:suppress|warn|error)|--?Werror|--?default-stream"
    r"|--?cudart|--?cudadevrt|--?relocatable-device-code|-rdc|--?std)$"
)
_GLUED = ("-D", "-U", "-I", "-L", "-l", "-O")
_FOLDER = re.compile(r"-(I|L|isystem ?|iquote ?|idirafter ?)([^-].*)$")
_LIBRARY_NAME = re.compile(r"-l[\w+.-]+$")
_TO_LINKER = re.compile(r"-Wl,(?!-{0,2}plugin)|-Xlinker[= ](?!-{0,2}plugin)")
_ARCHITECTURE = re.compile(
    r"(-gencode|--generate-code|-arch|--gpu-architecture|-code|--gpu-code)[= ](?:arch=)?[\w,=\[\]]+$"
)
_LINK = re.compile(
    r"-l:?[\w.+-]+$|-L[\w./+ -]+$|-pthread$|-fopenmp$|-s$|-O\d$"
    r"|-Wl(?:,(?:--?rpath[,=][\w./+-]+|--(?:no-)?as-needed))+$"
)
_LIBRARY = re.compile(r"/(?:usr|opt|lib|lib64)/(?!.*\.\.)[\w./+-]*\.(?:so(?:\.\d+)*|a)$")
"""A library of the system by its path."""
_WARNINGS_OF_NVCC = re.compile(
    r"(?:-Xcudafe|--cudafe-options)[= ](--?(?:diag_\w+|display_error_number)(?:[= ][\w,]+)?)$"
)


def read_flags(request: ExtensionRequest) -> BuildFlags:
    """Sort the flags of a request. Raises FlagRefused or SplitRefused."""
    flags = BuildFlags()
    read = [(partial(_main_flag, flags=flags), word) for word in _words(request.extra_cflags)]
    if request.cuda_sources or any(file.name.endswith((".cu", ".cuh")) for file in request.files):
        read += [(partial(_cuda_flag, flags=flags), word) for word in _words(request.extra_cuda_cflags, for_nvcc=True)]
    read += [(partial(_link_flag, flags=flags), word) for word in _words(request.extra_ldflags)]
    _read_all(read)
    return flags


def refusal(request: ExtensionRequest) -> tuple[BuildStatus, str] | None:
    """The status and the reason where neither the fast routes nor stock may have a flag, or the extension's name."""
    if not re.fullmatch(r"[\w.+-]+", request.name):
        name = request.name[:80]
        return "compile_error", f"extension name '{name}' has characters that a shell or a path would act on"
    try:
        read_flags(request)
    except FlagRefused as refused:
        return "refused_flag", str(refused)
    except SplitRefused:
        return None
    return None


def standards(flags: Iterable[str]) -> list[str]:
    """The -std flags among these."""
    return [flag for flag in flags if flag.startswith("-std=")]


def as_lines(macros: Iterable[str]) -> str:
    """Macros of `BuildFlags` as the beginning of a text."""
    return "".join(f"{line}\n" for line in macros)


def shell_words(flags: Iterable[str]) -> list[str]:
    """The words that a shell would make of the flags. Raises FlagRefused for what a shell would act on."""
    words: list[str] = []
    for flag in flags:
        if _ALWAYS_SHELL.search(flag) or _SHELL.search(_QUOTED.sub("", flag)):
            raise FlagRefused(flag, "has characters that a shell would act on")
        try:
            words += shlex.split(flag)
        except ValueError as error:
            raise FlagRefused(flag, f"cannot be read ({error})") from error
    return words


def _read_all(words: Iterable[tuple[Callable[[str], None], str]]) -> None:
    """Give each word to its reader. What only stock takes is raised last, so that nothing harmful hides behind it."""
    left: SplitRefused | None = None
    for read, word in words:
        try:
            read(word)
        except SplitRefused as refused:
            left = left or refused
    if left is not None:
        raise left


def _words(flags: Iterable[str], for_nvcc: bool = False) -> Iterator[str]:
    """The words a shell would see, a flag and its separate value joined: by a space, or as `-DX`."""
    words = deque(shell_words(flags))
    while words:
        word = words.popleft()
        takes = _WITH_VALUE.match(word) or (for_nvcc and _WITH_VALUE_FOR_NVCC.match(word))
        if words and (_PASSED_ON.match(word) or (takes and not words[0].startswith("-"))):
            word += ("" if word in _GLUED else " ") + words.popleft()
        yield word


def _rejection(word: str) -> Exception:
    why = harm(word)
    return SplitRefused(f"flag {word[:80]}") if why is None else FlagRefused(word, why)


def _main_flag(word: str, flags: BuildFlags) -> None:
    if _DROPPED.match(word) or _WARNING.match(word) or word == "-use_fast_math":
        return  # nvcc's flag with one hyphen is for g++ `-u se_fast_math`, which only a linker acts on
    if _OPTIMIZATION.match(word) or _HOST_CODE.match(word) or _STANDARD.match(word):
        flags.main.append(word)
    elif _LIBRARY_NAME.match(word):
        return  # libraries mean nothing to a compiler
    elif (folder := _search_folder(word)) is not None:
        flags.folders += folder
    elif not _macro(word, flags.main_macros):
        raise _compiler_rejection(word)


def _compiler_rejection(word: str) -> Exception:
    """As `_rejection`, where nothing is linked: words for the linker have no effect."""
    return SplitRefused(f"flag {word[:80]}") if _TO_LINKER.match(word) else _rejection(word)


def _search_folder(word: str) -> list[str] | None:
    """The folder where to search headers, if it is one for them; None for another flag. In a relative folder PyTorch's
    build has nothing of the candidate's, and one with libraries means nothing to a compiler."""
    match = _FOLDER.match(word)
    if match is None:
        return None
    return [match.group(2)] if match.group(1) != "L" and match.group(2).startswith("/") else []


def _macro(word: str, lines: list[str]) -> bool:
    match = _MACRO.match(word)
    if match is None:
        return False
    name, value = match.group(2), match.group(3)
    undefined = match.group(1) == "U"
    of_headers = name.startswith("_") and name not in _FREE_MACROS
    if of_headers or _HEADER_MACRO.match(name) or (undefined and name == "NDEBUG"):
        raise SplitRefused(f"flag {word} may change what the headers mean")
    if undefined:
        lines.append(f"#undef {name}")
        return True
    lines.append(f"#define {name} {'1' if value is None else value}")
    if name == "NDEBUG":  # it drops PyTorch's debug checks and `assert`, which is made anew when asked for
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
        _read_all((_ptxas_flag, part) for part in match.group(1).split(","))
        flags.device += [f"--ptxas-options={match.group(1)}"]
    elif match := re.match(r"(?:-Xcompiler|--compiler-options)[ =](.*)$", word):
        read = partial(_host_flag, flags=flags)
        _read_all((read, part) for part in re.split(r"[ ,]", match.group(1).strip("'\"")))
    elif match := _WARNINGS_OF_NVCC.match(word):
        flags.device += ["-Xcudafe", match.group(1)]
    elif _DEVICE.fullmatch(word) or re.match(
        r"--?(maxrregcount|fmad|ftz|prec-div|prec-sqrt|diag-suppress) [\w,]+$", word
    ):
        flags.device += word.split(" ")
    elif _DEVICE_IGNORED.match(word) or _DROPPED.match(word):
        return
    elif (folder := _search_folder(word)) is not None:
        flags.folders += folder
        flags.device += [f"-I{path}" for path in folder]
    elif _WARNING.match(word):
        raise SplitRefused(f"flag {word}")
    elif not _macro(word, flags.host_macros):
        raise _compiler_rejection(word)
    else:
        flags.device.append(word)


def _ptxas_flag(word: str) -> None:
    if not _PTXAS.match(word):
        raise _rejection(word)


def _host_flag(word: str, flags: BuildFlags) -> None:
    if not word or _DROPPED.match(word) or _WARNING.match(word):
        return
    if _OPTIMIZATION.match(word) or _HOST_CODE.match(word):
        flags.host.append(word)
    elif (folder := _search_folder(word)) is not None:
        flags.folders += folder
    elif not _macro(word, flags.host_macros):
        raise _compiler_rejection(word)


def _link_flag(word: str, flags: BuildFlags) -> None:
    if _LINK.match(word) or _LIBRARY.match(word):
        flags.link.append(word)
    elif _TO_LINKER.match(word) and steers_linker(word):
        raise FlagRefused(word, "changes how the object is linked")
    elif _TO_LINKER.match(word):
        raise SplitRefused(f"flag {word[:80]}")
    else:
        raise _rejection(word)
