"""Functions of the host in device code: nvcc refuses them, g++ would call them.

    check_host_calls(source, regions)     # raises Refuted, in nvcc's words, or UnsupportedOnCpu

A function of the source that names no execution space is the host's, and so are those of the C library that no device has.
Where nvcc's word is certain the source is `Refuted`. Where a macro, a condition, `if constexpr`, a function of both sides or
a member of a class may still mean something else, nothing is said about the source, and it does not run here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from dice.kernels.cpu.regions import Region
from dice.kernels.cpu.unsupported import UnsupportedOnCpu
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.declaration import Function
from dice.kernels.source.items import Item
from dice.kernels.source.lexer import CONDITIONAL, Refuted, Token, read_tokens, words

_OF_THE_C_LIBRARY = words(
    """
    dlopen dlsym dlvsym dlclose fopen fdopen freopen fclose fread fwrite fprintf fputs fgets fflush fscanf scanf sprintf
    snprintf puts putchar perror open close read write pread pwrite lseek mmap munmap mprotect shm_open getenv setenv putenv
    secure_getenv system popen fork vfork execve execv execvp execl execlp posix_spawn kill raise signal sigaction exit _exit
    atexit getpid gettid getppid sleep usleep nanosleep time gettimeofday clock_gettime pthread_create pthread_join rand srand
    random drand48 qsort bsearch strcmp strncmp strcat strchr strstr strtol strtod atoi atof socket connect send recv syscall
    ptrace ioctl
    """
)
"""Called as functions; what CUDA declares for a device (printf, malloc, memcpy, clock) is not here."""
_OF_BLAS = re.compile(
    r"(?:cblas|lapack|LAPACKE|mkl|MKL|openblas)_\w+|[sdcz](?:gemm|gemv|symm|syrk|trsm|trmm|ger|axpy|dot)_"
)
_BOTH_SIDES = words("__device__ __global__ constexpr consteval C10_DEVICE C10_HOST_DEVICE GPU_LAMBDA AT_DEVICE")
_STATEMENTS = words("return else do case throw co_return goto not and or new delete sizeof typename")
_BEHIND_A_NAME = ("=", ",", ";", "[", "{")
"""In a declaration."""
_FAR = 400
"""Tokens from the beginning of a declaration to a name of it."""
_OF_MATHEMATICS = re.compile(
    r"(?:f?abs|f?max|f?min|sqrt|rsqrt|cbrt|exp[2m10]*|log[12p0b]*|pow|sin|cos|tan|sinh|cosh|tanh|a(?:sin|cos|tan)h?|atan2|erfc?|"
    r"floor|ceil|round|rint|trunc|fmod|fma|hypot|norm|clamp|swap|isnan|isinf|isfinite|lgamma|tgamma|copysign|div|abs)[fl]?"
)
"""Names that CUDA declares as well: which one is meant depends on the types."""


@dataclass(frozen=True)
class _Mention:
    """A host function where device code mentions it. certain: nvcc refuses it whatever the rest means."""

    token: Token
    name: str
    certain: bool


def check_host_calls(source: CudaSource, regions: Sequence[Region]) -> None:
    """Raise Refuted, or UnsupportedOnCpu where it is not certain, for the first host function in device code.

    regions: all of `find_regions`.
    """
    host = _Host(source, regions)
    for region in host.reached:
        for mention in host.mentions(region):
            where = "__global__" if region.kind == "kernel" else "__device__"
            said = (
                f'calling a __host__ function("{mention.name}") from a {where} function("{region.name}") is not allowed'
            )
            if mention.certain:
                raise Refuted(source.line(mention.token.start), said)
            raise UnsupportedOnCpu(f"what may be {said.removesuffix(' is not allowed')}")
    for name in host.given_to_kernels():
        raise UnsupportedOnCpu(f"the address of the host function {name} among a kernel's arguments")


class _Host:
    def __init__(self, source: CudaSource, regions: Sequence[Region]) -> None:
        self._source, self._regions = source, regions
        self._starts = [token.start for token in source.tokens]
        self._spaces = {region.name for region in regions}
        self._on_device = {id(region.function) for region in regions}
        self._locals: dict[int, Set[str]] = {}
        self._declared = [item for item in source.items if item.function is not None]

    @cached_property
    def names(self) -> Set[str]:
        """Functions of the source that are the host's alone: no other one of that name runs on the device."""
        mine = {item.name for item in self._source.of_kind("host_function", "host_declaration") if not _is_both(item)}
        others = {item.name for item in self._source.items if item.kind not in ("host_function", "host_declaration")}
        others |= {item.name for item in self._declared if _is_both(item)}
        return {name for name in mine - others - self._spaces if name and not _OF_MATHEMATICS.fullmatch(name)}

    @cached_property
    def _own(self) -> Set[str]:
        """Names that the source defines: of functions, classes' members, macros."""
        return {function.name for function in self._source.functions} | self._source.macros.keys()

    @cached_property
    def _tainted(self) -> Set[str]:
        """Members of classes, variables and macros by which host functions are called."""
        known = {function.name for function in self._source.functions if self._is_in_device(function)}
        found: set[str] = set()
        for function in self._source.functions:
            of_class = function.name and function.name not in {item.name for item in self._declared}
            if of_class and function.name not in known and self._touches(function.brace, function.last):
                found.add(function.name)
        for item in self._source.of_kind("host_variable", "constant"):
            inside = item.tokens
            if any(self._is_host(inside, i, len(inside)) for i in range(len(inside))):
                found.add(item.name)
        for name, text in self._source.macros.items():
            body = read_tokens(text, directives=False)[3:]
            if any(self._is_host(body, i, len(body)) or body[i].text in self.names for i in range(len(body))):
                found.add(name)
        return found

    @cached_property
    def reached(self) -> list[Region]:
        """Regions that are compiled for the device: all that are no template and not of both sides, and what they, and the
        kernels that are launched, lead to."""
        launched = {word for launch in self._source.launches for word in re.findall(r"\w+", launch.callee)}
        sure = [region for region in self._regions if self._is_compiled(region, launched)]
        named = defaultdict[str, list[Region]](list)
        for region in self._regions:
            named[region.name].append(region)
        waiting, seen = [*sure], set(map(id, sure))
        while waiting:
            for word in waiting.pop().words & named.keys():
                found = [other for other in named.pop(word) if id(other) not in seen]
                seen |= set(map(id, found))
                waiting += found
        return [region for region in self._regions if id(region) in seen]

    def mentions(self, region: Region) -> Iterator[_Mention]:
        """The host functions that a region's body mentions."""
        function, tokens = region.function, self._source.tokens
        sure = self._is_sure(region)
        declared = self._declared_in(function)
        depth: list[bool] = []
        guarded = False
        for i in range(function.brace, function.last):
            token = tokens[i]
            if token.kind == "directive":
                _enter(depth, token.text)
                guarded = any(depth)
            elif token.kind != "identifier" or token.text in declared or guarded:
                continue
            elif self._is_host(tokens, i, function.last) or self._is_named(tokens, i):
                yield _Mention(token, token.text, sure and not depth)
            elif token.text in self._tainted:
                yield _Mention(token, token.text, False)

    def given_to_kernels(self) -> Iterator[str]:
        """Host functions that are named, and not called, among the arguments of a launch."""
        outer, source = self._source.outer_functions, self._source
        for launch in source.launches if self.names else ():
            first, last = bisect_right(self._starts, launch.closing), bisect_right(self._starts, launch.end)
            around = outer[: bisect_right(outer, launch.start, key=lambda each: each.start)][-1:]
            declared = [self._declared_in(function) for function in around if launch.start < function.end]
            for token, behind in pairwise(source.tokens[first : last + 1]):
                is_declared = any(token.text in names for names in declared)
                if token.text in self.names and not is_declared and behind.text in (",", ")", "}"):
                    yield token.text

    def _is_compiled(self, region: Region, launched: Set[str]) -> bool:
        function = region.function
        if region.kind == "kernel":
            return not function.is_template or region.name in launched
        head = {token.text for token in self._source.tokens[function.first : function.brace]}
        return not function.is_template and "__device__" in head and "__host__" not in head

    def _is_sure(self, region: Region) -> bool:
        """Whether what a region calls is called on the device, and is compiled."""
        function = region.function
        tokens = self._source.tokens[function.first : function.last]
        head = {token.text for token in tokens[: function.brace - function.first]}
        discards = function.is_template and any(token.text == "constexpr" for token in tokens)
        unevaluated = any(token.text in ("sizeof", "decltype", "noexcept") for token in tokens)
        return bool(head & {"__device__", "__global__"}) and "__host__" not in head and not (discards or unevaluated)

    def _is_in_device(self, function: Function) -> bool:
        return id(function) in self._on_device

    def _touches(self, first: int, last: int) -> bool:
        tokens = self._source.tokens
        return any(self._is_host(tokens, i, last) or self._is_named(tokens, i) for i in range(first, last))

    def _is_named(self, tokens: Sequence[Token], i: int) -> bool:
        """Whether tokens[i] is the name of one of the source's host functions."""
        if tokens[i].kind != "identifier" or tokens[i].text not in self.names:
            return False
        before = tokens[i - 1].text if i else ""
        if before == "::":
            owner = _owner(tokens, i)
            return any(owner in ("", *item.namespaces[-1:]) for item in self._declared if item.name == tokens[i].text)
        return before not in (".", "->")

    def _is_host(self, tokens: Sequence[Token], i: int, end: int) -> bool:
        """Whether tokens[i] is called as a function of the C library or of a BLAS."""
        token, following = tokens[i], tokens[i + 1].text if i + 1 < end else ""
        if token.kind != "identifier" or following != "(" or token.text in self._own:
            return False
        if token.text not in _OF_THE_C_LIBRARY and not _OF_BLAS.fullmatch(token.text):
            return False
        before = tokens[i - 1] if i else None
        if before is None or before.text in (".", "->"):
            return False
        if before.text == "::":
            return _owner(tokens, i) in ("", "std")
        return before.kind != "identifier" or before.text in _STATEMENTS

    def _declared_in(self, function: Function) -> Set[str]:
        """Names of parameters, and those that a body declares: `float sum`, `auto& f`."""
        if id(function) not in self._locals:
            self._locals[id(function)] = self._declarations(function)
        return self._locals[id(function)]

    def _declarations(self, function: Function) -> Set[str]:
        tokens, found = self._source.tokens, {parameter.name or "" for parameter in function.parameters}
        for i in range(function.brace + 1, function.last):
            before = tokens[i - 1]
            typed = before.kind == "identifier" and before.text not in _STATEMENTS
            typed |= before.text in ("&", "*") and tokens[i - 2].text in ("auto", "const")
            further = before.text in (",", "*", "&") and tokens[i + 1].text in _BEHIND_A_NAME
            if tokens[i].kind == "identifier" and (typed or (further and _is_declarator(tokens, i, function.brace))):
                found.add(tokens[i].text)
        return found


def _is_declarator(tokens: Sequence[Token], i: int, first: int) -> bool:
    """Whether tokens[i] is a further name of a declaration, or a pointer's: `float a = g(1, 2), f = 3;`, `float *f;`."""
    begin = name = _statement_begin(tokens, i, first)
    if begin is None or name is None:
        return False
    while name < i and tokens[name + 1].text not in (*_BEHIND_A_NAME, "("):
        name += 1
    typed = tokens[begin:name]
    return (
        bool(typed)
        and typed[0].text not in _STATEMENTS
        and all(each.kind == "identifier" or each.text in ("::", "<", ">", "*", "&") for each in typed)
    )


def _statement_begin(tokens: Sequence[Token], i: int, first: int) -> int | None:
    """Where the statement of tokens[i] begins in a body that opens at `first`; None among a call's arguments, or too far."""
    depth = 0
    for at in range(i - 1, max(first, i - _FAR), -1):
        text = tokens[at].text
        depth += (text in ")]}") - (text in "([{")
        if depth < 0:
            return at + 1 if text == "{" or tokens[at - 1].text == "for" else None
        if depth == 0 and text == ";":
            return at + 1
    return first + 1 if i - first <= _FAR else None


def _owner(tokens: Sequence[Token], i: int) -> str:
    """What stands before the `::` of tokens[i]; nothing in `return ::f(1)`."""
    before = tokens[i - 2] if i > 1 else None
    return before.text if before is not None and before.kind == "identifier" and before.text not in _STATEMENTS else ""


def _is_both(item: Item) -> bool:
    """Whether a function of namespace scope is made for the device, too."""
    words_of_head = {
        token.text for token in item.tokens[: next((i for i, t in enumerate(item.tokens) if t.text == "{"), None)]
    }
    return bool(words_of_head & _BOTH_SIDES) or any("DEVICE" in word for word in words_of_head)


def _enter(depth: list[bool], directive: str) -> None:
    """Keep the conditions around a place: whether each asks for CUDA."""
    match = CONDITIONAL.match(directive)
    if match is None:
        return
    if match.group(1) == "endif":
        del depth[-1:]
    elif match.group(1).startswith("if"):
        depth.append("__CUDA" in directive)
    elif depth:
        depth[-1] |= "__CUDA" in directive
