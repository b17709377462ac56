"""CUDA C++ text to C++ text for g++: the same program, its kernels made into functions that loop over threads.

The text keeps its lines and, but for the places edited, every character. Edited are: bodies of kernels (wrapped, see
csrc/cpu/include/dice_cpu/launch.h), launches, `extern __shared__` arrays, `threadIdx` and its kin outside kernels,
`assert` in device code, inline PTX, and in host code whatever asks whether a tensor is on the GPU: tensors are on the
CPU here, so `x.is_cuda()` becomes `x.is_cpu()`, `torch::kCUDA` becomes `torch::kCPU`, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dice.kernels.cpu.ptx import translate
from dice.kernels.cuda.declaration import Function, Parameter, parse_function
from dice.kernels.cuda.launch import Launch, find_launches
from dice.kernels.cuda.lexer import SplitRefused, Token, matching, matching_angle, source_of, split_commas, tokenize
from dice.kernels.cuda.source import BARRIERS, WARP_OPERATIONS, expand_macros

INDEX_NAMES = {
    "threadIdx": ("uint3", "thread_index"),
    "blockIdx": ("uint3", "block_index"),
    "blockDim": ("dim3", "block_dim"),
    "gridDim": ("dim3", "grid_dim"),
}
_DEVICE_MARKERS = frozenset({"__device__", "C10_DEVICE", "C10_HOST_DEVICE", "GPU_LAMBDA", "TORCH_HSTU_DEVICE"})
_GROUP_WORDS = frozenset(
    [
        "sync",
        "shfl",
        "shfl_up",
        "shfl_down",
        "shfl_xor",
        "ballot",
        "any",
        "all",
        "tiled_partition",
        "coalesced_threads",
        "this_grid",
        "reduce",
        "inclusive_scan",
        "exclusive_scan",
        "labeled_partition",
        "binary_partition",
    ]
)
_COLLECTIVE_WORDS = frozenset(
    [
        "BlockReduce",
        "BlockScan",
        "WarpReduce",
        "WarpScan",
        "BlockLoad",
        "BlockStore",
        "BlockRadixSort",
        "BlockExchange",
        "mma_sync",
        "load_matrix_sync",
        "store_matrix_sync",
        "fill_fragment",
    ]
)
_SYNCHRONISING = (BARRIERS | WARP_OPERATIONS | _COLLECTIVE_WORDS) - _GROUP_WORDS
_NOT_NAMES = frozenset({"__attribute__", "__launch_bounds__", "__align__", "alignas", "decltype"})
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINE = re.compile(r"#\s*define\s+([A-Za-z_]\w*)")
_CUDA_LITERAL = re.compile(r'^"cuda(:\d+)?"$')


class UnsupportedOnCpu(Exception):
    """The source uses what the CPU back end does not have; `what` names it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@dataclass(frozen=True)
class CpuSource:
    """The rewritten text.

    kernels: names of the kernels defined, once each, in order; entry `i` of the unit's launch table belongs to kernels[i]
    lockstep: device code has `volatile` accesses, which are to be executed in step by the lanes of a warp.
    track_index: functions other than kernels read threadIdx, so loops over threads must keep it up to date.
    """

    text: str
    kernels: tuple[str, ...]
    lockstep: bool
    track_index: bool


@dataclass
class _Edits:
    """Replacements in a text, applied at once. Insertions at one place keep the order in which they were made."""

    text: str
    items: list[tuple[int, int, int, str]] = field(default_factory=list)

    def replace(self, start: int, end: int, by: str) -> None:
        self.items.append((start, end, len(self.items), by))

    def insert(self, at: int, text: str) -> None:
        self.replace(at, at, text)

    def apply(self) -> str:
        pieces, position = [], 0
        for start, end, _, by in sorted(self.items):
            if start < position:
                raise SplitRefused("overlapping edits")
            pieces += [self.text[position:start], by]
            position = end
        return "".join([*pieces, self.text[position:]])


@dataclass(frozen=True)
class _Region:
    """The body of a function: text[start] is its `{`, text[end - 1] its `}`. `head` is where its declaration begins."""

    kind: str
    name: str
    head: int
    start: int
    end: int
    words: frozenset[str]
    function: Function | None = None


def rewrite_cuda(
    text: str, *, kernel_offset: int = 0, fibres_always: bool = False, assertions: bool = True
) -> CpuSource:
    """Rewrite a .cu source. `kernel_offset`: how many kernels the unit has already; `fibres_always`: no loop form.

    Raises UnsupportedOnCpu, naming what is missing, and SplitRefused when the text cannot be read.
    """
    tokens = tokenize(text)
    if any(t.kind == "directive" and re.search(r"__global__", t.text) for t in tokens):
        text = expand_macros(text)
        tokens = tokenize(text)
    return _Rewriter(text, tokens, kernel_offset, fibres_always, assertions).run()


def rewrite_host(text: str) -> str:
    """Rewrite C++ without kernels (`cpp_sources`)."""
    edits = _Edits(text)
    _edit_device_queries(tokenize(text), edits)
    return edits.apply()


class _Rewriter:
    def __init__(
        self, text: str, tokens: list[Token], kernel_offset: int, fibres_always: bool, assertions: bool
    ) -> None:
        self.text, self.tokens, self.edits = text, tokens, _Edits(text)
        self.kernel_offset, self.fibres_always, self.assertions = kernel_offset, fibres_always, assertions
        self.macros = {m.group(1): t.text for t in tokens if (m := _macro(t))}
        self.device_markers = _DEVICE_MARKERS | {
            name for name, body in self.macros.items() if "__device__" in _WORD.findall(body)
        }
        self.track_index = False

    def run(self) -> CpuSource:
        regions = self._regions()
        kernels = [region for region in regions if region.kind == "kernel"]
        names = list(dict.fromkeys(region.name for region in kernels))
        fibres = self._fibres(regions)
        lockstep = any(
            token.text == "volatile" and self.tokens[max(i - 1, 0)].text not in ("asm", "__asm__", "__asm")
            for i, token in enumerate(self.tokens)
        )
        shared_globals = self._shared_arrays(regions)
        for region in regions:
            self._inject(region, shared_globals)
        for region in kernels:
            self._wrap_kernel(region, region.name in fibres, self.kernel_offset + names.index(region.name))
        self._edit_launches()
        self._edit_device_tokens(regions)
        _edit_device_queries(self.tokens, self.edits)
        return CpuSource(self.edits.apply(), tuple(names), lockstep, self.track_index)

    # Regions ----------------------------------------------------------------------------------------------------------

    def _regions(self) -> list[_Region]:
        """Bodies of kernels, device functions and lambdas without a default capture, in order."""
        regions: list[_Region] = []
        i = 0
        while i < len(self.tokens):
            token = self.tokens[i]
            region = None
            if token.text == "__global__":
                region = self._function_region("kernel", i)
            elif token.text in self.device_markers and token.kind == "identifier":
                region = self._function_region("device", i)
            elif token.text == "[" and self._is_plain_lambda(i):
                region = self._lambda_region(i)
            if region is not None and not any(r.start == region.start for r in regions):
                regions.append(region)
            i += 1
        return regions

    def _function_region(self, kind: str, marker: int) -> _Region | None:
        """The function that tokens[marker] belongs to, or None for a declaration or a variable."""
        body = self._body_after(marker)
        if body is None:
            return None
        first = self._declaration_start(marker)
        end = matching(self.tokens, body)
        words = frozenset(t.text for t in self.tokens[first : end + 1] if t.kind == "identifier")
        if kind == "device":
            name = next(
                (a.text for a, b in zip(self.tokens[marker:body], self.tokens[marker + 1 : body + 1], strict=True)
                 if b.text == "(" and a.kind == "identifier" and a.text not in self.device_markers | _NOT_NAMES),
                "",
            )  # fmt: skip
            return _Region(kind, name, first, self.tokens[body].start, self.tokens[end].end, words)
        function = parse_function(self.text, self.tokens[first : end + 1], body - first)
        if function is None:
            raise UnsupportedOnCpu("a kernel declared in an unusual way")
        return _Region(kind, function.name, first, self.tokens[body].start, self.tokens[end].end, words, function)

    def _body_after(self, i: int) -> int | None:
        """Index of the `{` of the function body after tokens[i]; None when a `;` or `=` comes first."""
        parameters = False
        while i < len(self.tokens):
            token = self.tokens[i]
            if token.kind == "punctuator":
                if token.text == ";":
                    return None
                if token.text == "=" and self.tokens[i - 1].text != "operator":
                    return None
                if token.text == "{":
                    if not parameters:
                        return None
                    previous = self.tokens[i - 1]
                    if previous.kind == "identifier" and self._in_initialisers(i):
                        i = matching(self.tokens, i)  # member{value} in a constructor
                    else:
                        return i
                elif token.text == "}":
                    return None
                elif token.text in "([":
                    parameters = parameters or token.text == "("
                    if token.text == "(" and self.tokens[i - 1].text == "operator":
                        i += 1
                    else:
                        i = matching(self.tokens, i)
            i += 1
        return None

    def _in_initialisers(self, brace: int) -> bool:
        """Whether the identifier before tokens[brace] follows `:` or `,` after a parameter list."""
        return self.tokens[brace - 2].text in (":", ",") if brace >= 2 else False

    def _declaration_start(self, i: int) -> int:
        """Index of the first token of the declaration that tokens[i] is in."""
        depth = 0  # of template lists
        while i > 0:
            token = self.tokens[i - 1]
            if token.kind == "directive":
                break
            if token.kind == "punctuator":
                if token.text == ")":
                    i = self._opening(i - 1)
                    continue
                if token.text == ">":
                    depth += 1
                elif token.text == "<" and depth > 0:
                    depth -= 1
                elif depth == 0 and token.text in (";", "{", "}", ":", ",", "(", "=", "]"):
                    break
            i -= 1
        return i

    def _opening(self, i: int) -> int:
        """Index of the `(` that tokens[i] closes."""
        depth = 0
        while i >= 0:
            depth += {")": 1, "(": -1}.get(self.tokens[i].text, 0)
            if depth == 0:
                return i
            i -= 1
        raise SplitRefused("brackets do not match")

    def _is_plain_lambda(self, i: int) -> bool:
        """Whether tokens[i] opens a lambda's capture list that has no default capture."""
        before = self.tokens[i - 1] if i else None
        if before is not None and (
            before.kind in ("number", "string")
            or before.text in (")", "]", ">")
            or (before.kind == "identifier" and before.text != "return")
        ):
            return False
        following = [t.text for t in self.tokens[i + 1 : i + 3]]
        return len(following) == 2 and following[0] != "[" and not (following[0] in "&=" and following[1] in ",]")

    def _lambda_region(self, i: int) -> _Region | None:
        j = matching(self.tokens, i) + 1
        while j < len(self.tokens) and self.tokens[j].text != "{":
            token = self.tokens[j]
            if token.text == "(":
                j = matching(self.tokens, j)
            elif token.text not in ("->", "::", "<", ">", "*", "&", ",") and token.kind != "identifier":
                return None
            j += 1
        if j >= len(self.tokens):
            return None
        end = matching(self.tokens, j)
        words = frozenset(t.text for t in self.tokens[i : end + 1] if t.kind == "identifier")
        if not words & INDEX_NAMES.keys() or not self._inside_device(i):
            return None
        return _Region("lambda", "", i, self.tokens[j].start, self.tokens[end].end, words)

    def _inside_device(self, i: int) -> bool:
        """Whether tokens[i] lies in device code: the body of some function marked for the device."""
        offset = self.tokens[i].start
        markers = [
            j for j in range(i) if self.tokens[j].text == "__global__" or self.tokens[j].text in self.device_markers
        ]
        for j in reversed(markers):
            body = self._body_after(j)
            if body is not None and self.tokens[body].start < offset < self.tokens[matching(self.tokens, body)].end:
                return True
        return False

    # What needs fibres ------------------------------------------------------------------------------------------------

    def _fibres(self, regions: Sequence[_Region]) -> set[str]:
        """Names of the kernels whose threads may wait for each other, or are to run in step. Never too few."""
        if self.fibres_always:
            return {region.name for region in regions if region.kind == "kernel"}
        mentions: dict[str, set[str]] = {}
        for region in regions:
            mentions.setdefault(region.name or "lambda", set()).update(region.words)
        for name, body in self.macros.items():
            mentions.setdefault(name, set()).update(_WORD.findall(body))
        for name, words in self._types():
            mentions.setdefault(name, set()).update(words)
        waiting = set(_SYNCHRONISING) | {"volatile", "__shared__"}
        if "cooperative_groups" in self.text:
            waiting |= _GROUP_WORDS
        grown = True
        while grown:
            more = {name for name, words in mentions.items() if name not in waiting and words & waiting}
            waiting |= more
            grown = bool(more)
        kernels = {region.name for region in regions if region.kind == "kernel"}
        # A functor or lambda that waits can reach any kernel as a template argument.
        if "operator" in waiting or "lambda" in waiting:
            return kernels
        return {name for name in kernels if name in waiting}

    def _types(self) -> Iterable[tuple[str, set[str]]]:
        for i, token in enumerate(self.tokens):
            if token.text not in ("struct", "class", "union") or i + 1 >= len(self.tokens):
                continue
            j, name = i + 1, ""
            while j < len(self.tokens) and self.tokens[j].text not in ("{", ";", "(", ")", ">", ","):
                if (
                    self.tokens[j].kind == "identifier"
                    and not name
                    and self.tokens[j].text not in ("__align__", "alignas")
                ):
                    name = self.tokens[j].text
                j = matching_angle(self.tokens, j) + 1 if self.tokens[j].text == "<" else j + 1
            if name and j < len(self.tokens) and self.tokens[j].text == "{":
                end = matching(self.tokens, j)
                yield name, {t.text for t in self.tokens[j:end] if t.kind == "identifier"}

    # Edits ------------------------------------------------------------------------------------------------------------

    def _inject(self, region: _Region, shared_globals: dict[str, str]) -> None:
        """Declare at the top of a body what its text takes for granted: indices, shared arrays of namespace scope."""
        words = region.words | {
            w for name in region.words & self.macros.keys() for w in _WORD.findall(self.macros[name])
        }
        lines = [declaration for name, declaration in shared_globals.items() if name in words]
        if region.kind != "kernel" and (used := [name for name in INDEX_NAMES if name in words]):
            self.track_index = True
            for name in used:
                kind, member = INDEX_NAMES[name]
                lines.append(f"[[maybe_unused]] const {kind} {name} = dice_cpu_thread()->{member};")
        if lines:
            self.edits.insert(region.start + 1, " " + " ".join(lines))

    def _shared_arrays(self, regions: Sequence[_Region]) -> dict[str, str]:
        """Rewrite `extern __shared__`; returns the declarations, by name, of those at namespace scope."""
        outside: dict[str, str] = {}
        for i, token in enumerate(self.tokens):
            if token.text == "__shared__":
                for j in (i - 1, i + 1):
                    if self.tokens[j].text == "static":
                        self.edits.replace(self.tokens[j].start, self.tokens[j].end, "")
            if token.text != "extern" or token.kind != "identifier":
                continue
            end = next((j for j in range(i, len(self.tokens)) if self.tokens[j].text == ";"), len(self.tokens) - 1)
            words = {t.text for t in self.tokens[i:end]}
            if "__shared__" not in words or "{" in words:
                continue
            name, declaration = _dynamic_array(self.text, self.tokens[i:end])
            start, stop = token.start, self.tokens[end].end
            if any(region.start < start < region.end for region in regions):
                self.edits.replace(start, stop, declaration)
            else:
                outside[name] = declaration
                self.edits.replace(start, stop, "")
        return outside

    def _wrap_kernel(self, region: _Region, fibres: bool, entry: int) -> None:
        function = region.function
        assert function is not None
        parameters, names, types = [], [], []
        for index, parameter in enumerate(function.parameters):
            if parameter.type == "":
                raise UnsupportedOnCpu("a kernel with C-style variable arguments")
            name = parameter.name
            if name is None:
                name = f"dice_unnamed_{index}"
                self._name_parameter(region, parameter, name)
            text = _without_default(parameter)
            parameters.append(text if parameter.name else f"{text} {name}")
            names.append(f"{name}..." if parameter.is_pack else name)
            types.append(parameter.type)
        listed, passed = f"({', '.join(parameters)})", f"({', '.join(names)})"
        form = "DICE_CPU_FIBRES" if fibres else "DICE_CPU_LOOPS"
        self.edits.insert(region.start, f"{{ struct dice_body {{ DICE_CPU_RUN{listed} ")
        own = function.declarator if function.is_specialisation else function.name
        if function.is_template:
            arguments = [f"{p.name}..." if p.is_pack else p.name or "" for p in function.template_parameters]
            own = f"{own}<{', '.join(arguments)}>" if all(p.name for p in function.template_parameters) else ""
        signature = f"static_cast<void (*)({', '.join(types)})>(&{own})"
        bound = "1024" if function.launch_bounds is None else _first_argument(function.launch_bounds)
        registered = own and "cudaLaunch" in self.text
        define = f"static auto self() {{ return {signature}; }} " if registered else ""
        use = "(void)dice_cpu::Registered<dice_body>::done; " if registered else ""
        address = (
            f"reinterpret_cast<const void*>({signature})"
            if (own and "cudaFuncSetAttribute" in self.text) or registered
            else "nullptr"
        )
        self.edits.insert(
            region.end,
            f" {define}{form}({listed}, {passed}) }}; {use}"
            f'DICE_CPU_LAUNCH("{function.name}", {"true" if fibres else "false"}, ({address}), ({bound}), '
            f"{entry}, {passed}) }}",
        )

    def _name_parameter(self, region: _Region, parameter: Parameter, name: str) -> None:
        """Give a parameter without a name one, so that it can be passed on."""
        text = parameter.text if parameter.default is None else parameter.text.removesuffix(f" = {parameter.default}")
        at = self.text.find(text, self.text.index("(", self.tokens[region.head].start), region.start)
        if at < 0 or "(" in text or "[" in text:
            raise UnsupportedOnCpu("a kernel parameter without a name")
        self.edits.insert(at + len(text), f" {name}")

    def _edit_launches(self) -> None:
        for launch in find_launches(self.text):
            self._render(launch)

    def _render(self, launch: Launch) -> None:
        """`k<<<g, b>>>(x)` to `(dice_cpu_configure(g, b, 0, 0), k(x))`, by edits around what stays as it is."""
        marker = self.text.index("<<<", launch.start + len(launch.callee))
        closing = self.text.index(">>>", self.text.index(launch.configuration, marker) + len(launch.configuration)) + 3
        parts = [*launch.parts, *["0", "nullptr"][len(launch.parts) - 2 :]]
        configuration = f"{parts[0]}, {parts[1]}, static_cast<size_t>({parts[2]}), (void*)(cudaStream_t)({parts[3]})"
        self.edits.insert(launch.start, f"(dice_cpu_configure({configuration}), ")
        self.edits.replace(marker, closing, "")
        self.edits.insert(launch.end, ")")

    def _edit_device_tokens(self, regions: Sequence[_Region]) -> None:
        """`assert` and inline assembly inside device code."""
        for i, token in enumerate(self.tokens):
            if token.kind != "identifier" or token.text not in ("assert", "asm", "__asm__", "__asm"):
                continue
            if not any(region.start < token.start < region.end for region in regions):
                continue
            if token.text == "assert":
                if self.assertions and "define NDEBUG" not in self.text:
                    self.edits.replace(token.start, token.end, "DICE_CPU_ASSERT")
            else:
                self._edit_assembly(i)

    def _edit_assembly(self, i: int) -> None:
        end = next(j for j in range(i, len(self.tokens)) if self.tokens[j].text == ";")
        text = source_of(self.text, self.tokens[i:end])
        translated = translate(self.tokens[i:end], self.text)
        if translated is None:
            literal = re.search(r'"([^"]*)"', text)
            raise UnsupportedOnCpu(f"inline PTX: {literal.group(1).strip()[:60] if literal else text[:60]}")
        self.edits.replace(self.tokens[i].start, self.tokens[end].start, translated)


def _macro(token: Token) -> re.Match[str] | None:
    return _DEFINE.match(token.text) if token.kind == "directive" else None


def _first_argument(text: str) -> str:
    groups = split_commas(tokenize(text))
    return source_of(text, groups[0])


def _plain(text: str) -> str:
    """One line, without comments."""
    return " ".join(token.text for token in tokenize(text))


def _without_default(parameter: Parameter) -> str:
    text = parameter.text
    if parameter.default is not None:
        text = text.removesuffix(f" = {parameter.default}")
    return _plain(text)


def _dynamic_array(text: str, declaration: Sequence[Token]) -> tuple[str, str]:
    """Name and replacement of `extern __shared__ T name[]...`: a pointer to the block's dynamic shared memory."""
    words: list[Token] = []
    i = 0
    while i < len(declaration):
        token = declaration[i]
        if token.text in ("__align__", "alignas", "__attribute__") and declaration[i + 1].text == "(":
            i = matching(declaration, i + 1)
        elif token.text not in ("extern", "__shared__", "static"):
            words.append(token)
        i += 1
    bracket = next((j for j, token in enumerate(words) if token.text == "["), len(words))
    if any(token.text == "," for token in words[bracket:]) or bracket < 2:
        raise UnsupportedOnCpu(f"the declaration {source_of(text, declaration)}")
    name, kind = words[bracket - 1].text, " ".join(token.text for token in words[: bracket - 1])
    inner = ""
    if bracket < len(words):
        inner = " ".join(token.text for token in words[matching(words, bracket) + 1 :])
    if inner:
        return name, f"{kind} (*const {name}) {inner} = (({kind} (*) {inner})dice_cpu_thread()->shared);"
    if bracket == len(words):
        return name, f"{kind}& {name} = *(({kind}*)dice_cpu_thread()->shared);"
    return name, f"{kind}* const {name} = (({kind}*)dice_cpu_thread()->shared);"


def _edit_device_queries(tokens: Sequence[Token], edits: _Edits) -> None:
    """Host code that asks where a tensor lives, or puts it on the GPU, gets the answers that a GPU would give."""
    for token in tokens:
        if token.kind == "directive" and "define" in token.text:
            inner = tokenize(token.text, directives=False)
            shifted = [Token(t.kind, t.text, t.start + token.start, t.end + token.start) for t in inner]
            _edit_device_queries(shifted, edits)
    for i, token in enumerate(tokens):
        before = tokens[i - 1].text if i else ""
        following = [t.text for t in tokens[i + 1 : i + 5]]
        member = before in (".", "->")
        replacement = None
        if member and following[:1] == ["("]:
            # is_xla and is_meta are false for every tensor here; as an index that is device 0.
            simple = {"is_cuda": "is_cpu", "is_cpu": "is_xla", "get_device": "is_meta", "is_pinned": "is_meta"}
            replacement = simple.get(token.text)
            if token.text == "type" and [t.text for t in tokens[i + 2 : i + 5]] == [")", ".", "is_cuda"]:
                replacement = "device"
            if token.text == "cuda":
                replacement = "to"
                edits.insert(tokens[i + 1].end, "::at::kCPU" if following[1] == ")" else "::at::kCPU, ")
            elif token.text == "index" and [t.text for t in tokens[max(i - 4, 0) : i - 1]] == ["device", "(", ")"]:
                replacement = "is_meta"
            elif token.text == "pin_memory":
                replacement = "contiguous"
        elif token.text == "kCUDA" and token.kind == "identifier":
            replacement = "kCPU"
        elif (
            token.text == "CUDA"
            and before == "::"
            and i >= 2
            and tokens[i - 2].text in ("DeviceType", "Backend", "DispatchKey")
        ):
            replacement = "CPU"
        elif token.kind == "string" and _CUDA_LITERAL.match(token.text):
            replacement = '"cpu"'
        elif token.text == "torch" and following[:3] == ["::", "cuda", "::"]:
            edits.replace(token.start, tokens[i + 2].end, "dice_cpu::torch_cuda")
        if replacement is not None:
            edits.replace(token.start, token.end, replacement)
