"""Tricks in the C++ and CUDA sources, read as tokens: comments and strings do not count unless a rule says so."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from dice.kernels.checks.cuda_circumstances import cuda_circumstances
from dice.kernels.checks.cuda_conditions import cuda_conditions
from dice.kernels.checks.cuda_kernels import line_of
from dice.kernels.checks.cuda_state import before, lasting_state
from dice.kernels.checks.finding import finding, one_of_each
from dice.kernels.checks.host_loops import host_loops
from dice.kernels.checks.precision import native_has_run
from dice.kernels.checks.seen import Seen
from dice.kernels.checks.sensitive import C_FUNCTIONS, EVALUATION_VARIABLES, proc_finding
from dice.kernels.checks.streams import unjoined_streams
from dice.kernels.checks.workload import is_work
from dice.kernels.records.verdict import Finding
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import WORD, Token, partner, shallow, words

_CALLS: dict[str, str] = {
    name: kind
    for kind, names in {
        "background_thread": "pthread_create cudaLaunchHostFunc cudaStreamAddCallback intraop_launch",
        "deliberate_delay": "usleep nanosleep sleep sleep_for sleep_until",
        "torch_patched": "TORCH_LIBRARY_IMPL",
        "process_spawned": "system popen fork vfork execve execv execvp execl execlp posix_spawn kill killpg tgkill",
        "network_access": "socket connect getaddrinfo curl_easy_init",
        "memory_tampering": "dlsym dlvsym mprotect ptrace process_vm_readv process_vm_writev mremap "
        "cudaIpcOpenMemHandle cuMemGetAddressRange cudaMemRangeGetAttribute dl_iterate_phdr",
        "process_hook": "signal sigaction atexit on_exit at_quick_exit prctl seccomp",
        "early_exit": "_exit _Exit quick_exit",
        "result_forging": "dup2 dup3 pwrite writev fdopen",
        "python_from_native": "PyRun_SimpleString PyRun_String PyRun_SimpleFile PyEval_EvalCode PyImport_ImportModule "
        "PyImport_Import PyObject_CallObject PyGILState_Ensure",
        "environment_sniffing": "getppid gethostname dispatch_mode_enabled",
        "l2_persistence": "cudaCtxResetPersistingL2Cache",
        "cuda_graph": "cudaGraphLaunch cudaStreamBeginCapture cudaGraphInstantiate",
        "global_precision_switch": "setAllowTF32CuBLAS setFloat32MatmulPrecision setAllowTF32CuDNN",
    }.items()
    for name in names.split()
}
_GLOBAL_ONLY = words(
    "signal sleep system kill connect socket fork popen prctl seccomp getppid gethostname pwrite atexit"
)
"""Common words: they count as the C functions only when called without an object or another namespace."""
_QUALIFIED: dict[tuple[str, str], str] = {
    ("std", "thread"): "background_thread",
    ("std", "jthread"): "background_thread",
    ("std", "async"): "background_thread",
    ("std", "packaged_task"): "background_thread",
    ("at", "launch"): "background_thread",
    ("c10", "ThreadPool"): "background_thread",
    ("c10", "TaskThreadPoolBase"): "background_thread",
    ("at", "PTThreadPool"): "background_thread",
    ("py", "exec"): "python_from_native",
    ("py", "eval"): "python_from_native",
    ("pybind11", "exec"): "python_from_native",
    ("pybind11", "eval"): "python_from_native",
}
_RUNTIME_FUNCTIONS = words(
    """
    cudaEventElapsedTime cudaEventRecord cudaEventSynchronize cudaEventQuery cudaDeviceSynchronize cudaLaunchKernel
    cudaStreamSynchronize cudaStreamQuery cudaMalloc cudaFree cudaMemcpy cudaMemcpyAsync cudaGetLastError
    cudaPeekAtLastError clock_gettime gettimeofday
    """
)
_NARROWING = words(
    """
    __float2half __float2half_rn __float2half_rz __floats2half2_rn __float22half2_rn __float2half2_rn
    __float2bfloat16 __float2bfloat16_rn __floats2bfloat162_rn __float22bfloat162_rn __nv_cvt_float_to_fp8
    __nv_fp8_e4m3 __nv_fp8_e5m2 __float_to_tf32
    """
)
_BYTE_SUMS = words("__dp4a __dp2a_lo __dp2a_hi")
"""Of whole numbers: right where the problem has such, which leave no error to measure, and narrow where it has fractions."""
_NARROW_SCALARS = words("kHalf kFloat16 kBFloat16 Half BFloat16 kFloat8_e4m3fn")
_FAST_MODES = words(
    """
    CUBLAS_COMPUTE_32F_FAST_TF32 CUBLAS_COMPUTE_32F_FAST_16F CUBLAS_COMPUTE_32F_FAST_16BF CUBLAS_COMPUTE_16F
    CUBLAS_TF32_TENSOR_OP_MATH CUBLAS_TENSOR_OP_MATH CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION
    """
)


_DISPATCH = words(
    "ExcludeDispatchKeyGuard ForceDispatchKeyGuard TorchDispatchModeTLS PythonTLSSnapshot "
    "tls_set_dispatch_key_excluded tls_set_dispatch_key_included _force_tls_local_dispatch_key_set "
    "tls_local_dispatch_key_set tls_is_dispatch_key_excluded tls_is_dispatch_key_included tls_is_dispatch_keyset_excluded "
    "tls_is_dispatch_keyset_included raw_local_dispatch_key_set LocalDispatchKeySet dispatch_mode_enabled "
    "python_ks TorchFunctionMode PythonTorchFunctionTLS PythonModeTLS "
    "hasGlobalCallbacks hasThreadLocalCallbacks hasCallbacks"
)
"""What turns PyTorch's dispatch modes, by which operators are seen, off or asks for them."""
_BENEATH = words(
    "cpu cuda native meta redispatch compositeexplicitautograd compositeimplicitautograd "
    "compositeexplicitautogradnonfunctional"
)
"""Namespaces of ATen whose operators are called past the dispatcher, where no mode sees them."""
_REDISPATCH = words("redispatch redispatchBoxed callBoxedForDispatchKey")
_RAW = re.compile(r'(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\((?P<text>.*)\)(?P=fence)"', re.DOTALL)


def cuda_findings(
    source: CudaSource, seen: Seen | None = None, *, problem_is_narrow: bool, spared: Set[str] = frozenset()
) -> list[Finding]:
    """At most one finding of each name, with the first line that shows it.

    seen: what a run showed; without one, a common word that may be a C function only warns.
    problem_is_narrow: the reference computes in half, bfloat16 or fp8, so narrow types are allowed.
    spared: functions that only get narrow inputs, where narrow types are allowed as well.
    """
    return one_of_each(
        finding(name, "static", note + line_of(source, token), warns=_warns(name, token, seen))
        for name, token, note in _all(source, problem_is_narrow, spared)
        if not _is_refuted(source, name, token, seen)
    )


def _is_common_word(name: str, token: Token) -> bool:
    """Whether the finding is a word that may name anything, and that an object shows if it is the C function."""
    return token.text in _GLOBAL_ONLY & C_FUNCTIONS and _CALLS[token.text] == name


def _warns(name: str, token: Token, seen: Seen | None) -> bool:
    return seen is None and (_is_common_word(name, token) or name == "precision_downgrade")


def _is_refuted(source: CudaSource, name: str, token: Token, seen: Seen | None) -> bool:
    """Whether the run shows that it is not so: the object calls no such function, the narrow arithmetic loses nothing."""
    if seen is None:
        return False
    if name == "precision_downgrade":
        exact = seen.as_exact is True or (seen.as_exact is None and token.text in _BYTE_SUMS)
        return exact and native_has_run(source, token, seen)
    return _is_common_word(name, token) and seen.imports is not None and token.text not in seen.imports


_VERIFIERS_OWN = re.compile(
    r"DICE_CPU_\w+|dice_cpu_(?:control|configure|launch|keep|keeping|register|kernels|set_error|last_error)"
    r"|dice_launch_(?:open|table|enable|reset)|dice_ledger|dice_call_watching|__sanitizer_cov_\w+|no_sanitize_coverage"
)
"""Functions of the launch stubs and of the CPU back end's runtime, and what keeps code from being counted there; other names
may be about the Dice coefficient."""


def _all(source: CudaSource, problem_is_narrow: bool, spared: Set[str]) -> Iterator[tuple[str, Token, str]]:
    tokens = source.tokens
    own = _own(source)
    for index, token in enumerate(tokens):
        if token.kind == "identifier":
            yield from _identifier(tokens, index, own)
            if _VERIFIERS_OWN.fullmatch(token.text):
                yield "harness_import", token, ""
        elif token.kind == "string":
            yield from _string(tokens, index)
        elif token.kind == "directive":
            yield from _pasted_name(token)
            if any(map(_VERIFIERS_OWN.fullmatch, WORD.findall(token.text))):
                yield "harness_import", token, ""
    yield from _failed_launches(source)
    yield from _beneath_the_dispatcher(tokens)
    yield from (("host_computation", token, "") for token in host_loops(source))
    yield from (("environment_sniffing", token, "") for token in cuda_circumstances(source))
    yield from (("environment_sniffing", token, "another program: ") for token in cuda_conditions(source))
    yield from (("side_stream", token, "") for token in unjoined_streams(source))
    yield from lasting_state(source)
    if not problem_is_narrow:
        yield from _precision(source, spared)


@dataclass(frozen=True)
class _Own:
    """What the source defines itself: functions and variables that hold one, places of functions' names, libraries, and
    other names of namespaces; and places of literals that may be modes in which a file is written."""

    names: frozenset[str]
    heads: frozenset[int]
    libraries: frozenset[str]
    aliases: dict[str, str]
    modes: Sequence[int]


def _own(source: CudaSource) -> _Own:
    tokens = source.tokens
    heads = {
        index
        for function in source.functions
        for index in range(function.first, function.brace)
        if tokens[index].text == function.name and tokens[index + 1].text == "("
    }
    names = {tokens[index].text for index in heads}
    libraries, aliases, modes = set(), dict[str, str](), list[int]()
    for index, token in enumerate(tokens):
        if token.kind == "string" and _is_to_write(_literal(token)):
            modes.append(index)
        after = [item.text for item in tokens[index + 1 : index + 3]]
        if after == ["=", "["]:
            names.add(token.text)
        elif token.text == "TORCH_LIBRARY" and len(after) == 2:
            libraries.add(after[1])
        elif before(tokens, index) == "namespace" and after[:1] == ["="]:
            aliases[token.text] = after[-1]
    return _Own(frozenset(names), frozenset(heads), frozenset(libraries), aliases, modes)


def _called(tokens: list[Token], index: int) -> bool:
    return index + 1 < len(tokens) and tokens[index + 1].text == "("


def _is_c_function(tokens: list[Token], index: int) -> bool:
    """Whether tokens[index] is called as a C function: not a member, not another namespace's, not a declaration."""
    previous = before(tokens, index)
    if previous in (".", "->") or not _called(tokens, index):
        return False
    if previous == "::":
        return index < 2 or tokens[index - 2].kind != "identifier" or tokens[index - 2].text == "std"
    return index == 0 or tokens[index - 1].kind != "identifier" or previous in ("return", "else", "do")


def _identifier(tokens: list[Token], index: int, own: _Own) -> Iterator[tuple[str, Token, str]]:
    token = tokens[index]
    kind = _CALLS.get(token.text)
    if (
        kind is not None
        and _called(tokens, index)
        and (token.text not in _GLOBAL_ONLY or (_is_c_function(tokens, index) and token.text not in own.names))
        # PyTorch refuses a second TORCH_LIBRARY of any name that exists.
        and not (
            token.text == "TORCH_LIBRARY_IMPL" and own.libraries & {item.text for item in tokens[index + 2 : index + 3]}
        )
    ):
        yield kind, token, ""
    if token.text in _RUNTIME_FUNCTIONS and index in own.heads:
        yield "memory_tampering", token, "takes the place of a library function: "
    after = [item.text for item in tokens[index + 1 : index + 5]]
    previous = before(tokens, index)
    owner = tokens[index - 2].text if index >= 2 and previous == "::" else ""
    owner = own.aliases.get(owner, owner)
    if (owner, token.text) in _QUALIFIED and after[:1] != ["::"]:
        yield _QUALIFIED[owner, token.text], token, ""
    elif token.text == "exit" and _is_c_function(tokens, index) and after[1:3] in (["0", ")"], ["EXIT_SUCCESS", ")"]):
        yield "early_exit", token, ""
    elif token.text in ("module_", "module") and after[:2] == ["::", "import"]:
        yield "python_from_native", token, ""
    elif token.text == "constructor" and "__attribute__" in (item.text for item in tokens[max(0, index - 3) : index]):
        yield "process_hook", token, ""
    elif token.text in ("getenv", "secure_getenv") and after[:1] == ["("]:
        if any(part in "".join(after[1:2]).upper() for part in EVALUATION_VARIABLES):
            yield "environment_sniffing", token, ""
    elif token.text in _DISPATCH:
        yield "environment_sniffing", token, ""
    elif token.text in ("thread", "jthread") and previous not in (".", "->", "::") and _declares(tokens, index):
        yield "background_thread", token, ""
    elif token.text in ("cudaLimitPersistingL2CacheSize", "cudaAccessPropertyPersisting"):
        yield "l2_persistence", token, ""
    elif token.text in ("write", "send") and _is_c_function(tokens, index) and token.text not in own.names:
        yield "result_forging", token, ""
    elif token.text in ("ofstream", "shm_open") or (
        token.text in ("fopen", "freopen") and _writes(tokens, index, own.modes)
    ):
        yield "file_written", token, ""


def _declares(tokens: list[Token], index: int) -> bool:
    """Whether tokens[index] is the type in a declaration with arguments: `thread t(work)`."""
    after = tokens[index + 1 : index + 3]
    return len(after) == 2 and after[0].kind == "identifier" and after[1].text in ("(", "{")


def _writes(tokens: list[Token], index: int, modes: Sequence[int]) -> bool:
    """Whether a call of fopen(path, mode) or freopen(path, mode, stream) asks to write; the mode is a literal."""
    closing = partner(tokens, index + 1) if _called(tokens, index) else None
    if closing is None:
        return False
    commas = (place for place in shallow(tokens, index + 2, closing) if tokens[place].text == ",")
    begin = next(commas, closing)
    mode = bisect_left(modes, begin)
    return mode < len(modes) and modes[mode] < next(commas, closing)


def _is_to_write(mode: str) -> bool:
    return mode[:1] in ("w", "a") or "+" in mode


def _literal(token: Token) -> str:
    """What stands in a string literal, without prefix, quotes and the fence of a raw one."""
    raw = _RAW.fullmatch(token.text)
    return raw["text"] if raw is not None else token.text.partition('"')[2].removesuffix('"')


def _string(tokens: list[Token], index: int) -> Iterator[tuple[str, Token, str]]:
    """String literals that give access to a process or its memory, wherever they are passed."""
    text = _literal(tokens[index])
    kind = proc_finding(text)
    if kind is not None:
        yield kind, tokens[index], ""
    elif text.startswith("/dev/shm"):
        yield "file_written", tokens[index], ""


def _pasted_name(directive: Token) -> Iterator[tuple[str, Token, str]]:
    """`cuda##StreamCreate`: an API name that is put together by the preprocessor."""
    compact = directive.text.replace(" ", "")
    if "define" in compact and any(
        f"{head}##" in compact for head in ("cuda", "cu", "cublas", "dl", "std", "pthread_")
    ):
        yield "dynamic_code", directive, "pasted name: "


def _failed_launches(source: CudaSource) -> Iterator[tuple[str, Token, str]]:
    """Launches whose grid or block is the constant 0, or whose block is over 1024 threads."""
    for launch in source.launches:
        grid, block = [*launch.parts, ""][:2]
        if "0" in (grid, block) or (block.isdecimal() and int(block[:9]) > 1024):
            yield "failed_launch", Token("punctuator", "<<<", launch.opening, launch.opening + 3), ""


def _beneath_the_dispatcher(tokens: list[Token]) -> Iterator[tuple[str, Token, str]]:
    """`at::cpu::relu(x)`, `at::_ops::relu::redispatch(keys, x)`: operators that no dispatch mode sees.

    Helpers (`at::cuda::getCurrentCUDAStream`, `at::native::canUse32BitIndexMath`) live in the same namespaces.
    """
    texts = [token.text for token in tokens]
    aliases = {
        texts[index + 1]
        for index, text in enumerate(texts[:-5])
        if text == "namespace" and texts[index + 2 : index + 5] == ["=", "at", "::"] and texts[index + 5] in _BENEATH
    }
    uses_aten = any(token.kind == "string" and "aten::" in token.text for token in tokens)
    for index, token in enumerate(tokens):
        if token.kind != "identifier" or index < 4:  # the shortest, `at::cpu::relu`, has four tokens before it
            continue
        scope = texts[max(index - 4, 0) : index]
        beneath = scope[-1] == "::" and (scope[-2] in aliases or (scope[:2] == ["at", "::"] and scope[2] in _BENEATH))
        again = token.text in _REDISPATCH and (
            uses_aten if scope[-1] in (".", "->") else scope[-1] == "::" and is_work(scope[-2])
        )
        if (beneath and is_work(token.text)) or again:
            yield "environment_sniffing", token, "beneath the dispatcher: "


def _precision(source: CudaSource, spared: Set[str]) -> Iterator[tuple[str, Token, str]]:
    tokens = source.tokens
    names = {token.text for token in tokens if token.kind == "identifier"}
    handles_types = bool(names & {"scalar_type", "dtype"}) and any(
        token.text in _NARROW_SCALARS and before(tokens, index) == "::" and _is_compared(tokens, index)
        for index, token in enumerate(tokens)
    )
    handles_types |= any(name.startswith("AT_DISPATCH") and ("HALF" in name or "AND" in name) for name in names)
    inside = {
        i for function in source.functions if function.name in spared for i in range(function.first, function.last)
    }
    for index, token in enumerate(tokens):
        if index in inside:
            continue
        if token.kind == "string":
            narrows = "tf32" in token.text and ("mma" in token.text or "cvt" in token.text)
        else:
            narrows = token.text in _FAST_MODES | _BYTE_SUMS or _is_narrow_cast(tokens, index)
            narrows |= token.text in _NARROWING and not handles_types
            narrows |= token.text in ("half", "__half", "__nv_bfloat16") and not handles_types and _casts(tokens, index)
        if narrows:
            yield "precision_downgrade", token, ""


def _is_narrow_cast(tokens: list[Token], index: int) -> bool:
    """`.to(torch::kHalf)` and the tf32 fragments of wmma."""
    after = [item.text for item in tokens[index + 1 : index + 6]]
    if tokens[index].text in ("to", "toType"):
        return before(tokens, index) == "." and bool(set(after) & _NARROW_SCALARS)
    return tokens[index].text == "precision" and after[:2] == ["::", "tf32"]


def _casts(tokens: list[Token], index: int) -> bool:
    """`(half)x`, `half(x)` and `static_cast<half>(x)`."""
    after = tokens[index + 1].text if index + 1 < len(tokens) else ""
    previous = before(tokens, index)
    if previous == "<" and after == ">":
        return index >= 2 and tokens[index - 2].text == "static_cast"
    return (previous == "(" and after == ")") or (after == "(" and previous in ("=", "(", ",", "return", "*", "+"))


def _is_compared(tokens: list[Token], index: int) -> bool:
    texts = [item.text for item in tokens[max(0, index - 8) : index]]
    return bool({"==", "!=", "case"} & set(texts))
