"""CUDA C++ text to C++ text for g++: the same program, its kernels made into functions that loop over threads.

The text keeps its lines and, but for the places edited, every character. Edited are: bodies of kernels (wrapped, see
csrc/cpu/include/dice_cpu/launch.h), launches, `extern __shared__` arrays, `threadIdx` and the like outside kernels,
`assert` in device code, inline PTX, and in host code whatever asks where a tensor is (host_rewrite.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dice.kernels.cpu.edits import Edits
from dice.kernels.cpu.fibres import kernels_that_wait
from dice.kernels.cpu.host_calls import check_host_calls
from dice.kernels.cpu.host_rewrite import edit_device_queries
from dice.kernels.cpu.ptx import translate
from dice.kernels.cpu.regions import INDEX_NAMES, DeviceCode, Region, find_regions
from dice.kernels.cpu.unsupported import UnsupportedOnCpu
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.declaration import Parameter
from dice.kernels.source.launch import Launch
from dice.kernels.source.lexer import (
    WORD,
    SplitRefused,
    Token,
    at_commas,
    check_tokens,
    matching,
    source_of,
    tokenize,
)
from dice.kernels.source.macros import Preprocess, expand_macros


@dataclass(frozen=True)
class CpuSource:
    """The rewritten text.

    kernels: names of the kernels defined, once each, in order
    lockstep: device code has `volatile` accesses, which are to be executed in step by the lanes of a warp.
    track_index: functions other than kernels read threadIdx, so loops over threads must keep it up to date.
    """

    text: str
    kernels: tuple[str, ...]
    lockstep: bool
    track_index: bool


def rewrite_cuda(text: str, preprocess: Preprocess | None = None, *, assertions: bool = True) -> CpuSource:
    """Rewrite a .cu source. `preprocess`: expands macros that make kernels. `assertions`: whether `assert` in it checks (no
    -DNDEBUG).

    Raises UnsupportedOnCpu, naming what is missing, Refuted for a host function in device code, and SplitRefused when the
    text cannot be read.
    """
    source = CudaSource(text)
    check_tokens(text, source.tokens)
    if any("__global__" in token.text for token in source.tokens if token.kind == "directive"):
        source = CudaSource(expand_macros(text, source.tokens, preprocess))
        check_tokens(source.text, source.tokens)
    return _Rewriter(source, assertions).run()


class _Rewriter:
    def __init__(self, source: CudaSource, assertions: bool) -> None:
        self.source, self.text, self.tokens, self.edits = source, source.text, source.tokens, Edits(source.text)
        self.assertions = assertions
        self.track_index = False

    def run(self) -> CpuSource:
        regions = find_regions(self.source)
        check_host_calls(self.source, regions)
        device = DeviceCode(regions)
        kernels = [region for region in regions if region.kind == "kernel"]
        names = dict.fromkeys(region.name for region in kernels)
        fibres = kernels_that_wait(self.source, regions)
        lockstep = any(
            token.text == "volatile" and self.tokens[max(i - 1, 0)].text not in ("asm", "__asm__", "__asm")
            for i, token in enumerate(self.tokens)
        )
        shared_globals = self._shared_arrays(device)
        for region in regions:
            self._inject(region, shared_globals)
        for region in kernels:
            self._wrap_kernel(region, region.name in fibres)
        self.source.check_launches(0, len(self.text))
        for launch in self.source.launches:
            self._edit_launch(launch)
        self._edit_device_tokens(device)
        edit_device_queries(self.tokens, self.edits)
        return CpuSource(self.edits.apply(), tuple(names), lockstep, self.track_index)

    def _inject(self, region: Region, shared_globals: dict[str, str]) -> None:
        """Declare at the top of a body what its text takes for granted: indices, shared arrays of namespace scope."""
        macros = self.source.macros
        words = region.words | {w for name in region.words & macros.keys() for w in WORD.findall(macros[name])}
        lines = [declaration for name, declaration in shared_globals.items() if name in words]
        if region.kind != "kernel" and (used := [name for name in INDEX_NAMES if name in words]):
            self.track_index = True
            for name in used:
                kind, member = INDEX_NAMES[name]
                lines.append(f"[[maybe_unused]] const {kind} {name} = dice_cpu_thread()->{member};")
        if lines:
            self.edits.insert(region.start + 1, " " + " ".join(lines))

    def _shared_arrays(self, device: DeviceCode) -> dict[str, str]:
        """Rewrite `extern __shared__`; returns the declarations, by name, of those at namespace scope."""
        outside: dict[str, str] = {}
        extern: int | None = None  # in the statement that is being read
        shared = False
        for i, token in enumerate(self.tokens):
            if token.text == "__shared__":
                shared = True
                for neighbour in (*self.tokens[max(i - 1, 0) : i], *self.tokens[i + 1 : i + 2]):
                    if neighbour.text == "static":
                        self.edits.replace(neighbour.start, neighbour.end, "")
                self._move_behind_alignas(i)
            elif token.text == "extern" and token.kind == "identifier" and extern is None:
                extern = i
            elif token.text in (";", "{", "}") and token.kind == "punctuator":
                if token.text == ";" and shared and extern is not None:
                    name, declaration = _dynamic_array(self.text, self.tokens[extern:i])
                    start, stop = self.tokens[extern].start, token.end
                    inside = start in device
                    self.edits.replace(start, stop, declaration if inside else "")
                    if not inside:
                        outside[name] = declaration
                extern, shared = None, False
        return outside

    def _move_behind_alignas(self, i: int) -> None:
        """`__shared__ alignas(16) float s[8]`: C++ wants alignas before the `static` that tokens[i] stands for."""
        end = i + 1
        while [token.text for token in self.tokens[end : end + 2]] == ["alignas", "("]:
            end = matching(self.tokens, end + 1) + 1
        if end > i + 1 and self.tokens[i - 1].text != "extern":
            self.edits.replace(self.tokens[i].start, self.tokens[i].end, "")
            self.edits.insert(self.tokens[end - 1].end, " __shared__")

    def _wrap_kernel(self, region: Region, fibres: bool) -> None:
        function = region.function
        parameters, names, types = [], [], []
        for index, parameter in enumerate(function.parameters):
            if parameter.type == "":
                raise UnsupportedOnCpu("a kernel with C-style variable arguments")
            name = parameter.name
            if name is None:
                name = f"dice_unnamed_{index}"
                self._name_parameter(parameter, name)
            text = _plain(parameter.without_default)
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
            f"{passed}) }}",
        )

    def _name_parameter(self, parameter: Parameter, name: str) -> None:
        """Give a parameter without a name one, so that it can be passed on."""
        if "(" in parameter.type or "[" in parameter.type:
            raise UnsupportedOnCpu("a kernel parameter without a name")
        self.edits.insert(parameter.end, f" {name}")

    def _edit_launch(self, launch: Launch) -> None:
        """`k<<<g, b>>>(x)` to `(dice_cpu_configure(g, b, 0, 0), k(x))`, by edits around what stays as it is."""
        parts = [*launch.parts, *["1", "0", "nullptr"][len(launch.parts) - 1 :]]
        configuration = f"{parts[0]}, {parts[1]}, static_cast<size_t>({parts[2]}), (void*)(cudaStream_t)({parts[3]})"
        self.edits.insert(launch.start, f"(dice_cpu_configure({configuration}), ")
        self.edits.replace(launch.opening, launch.closing, "")
        self.edits.insert(launch.end, ")")

    def _edit_device_tokens(self, device: DeviceCode) -> None:
        """`assert` and inline assembly inside device code."""
        for i, token in enumerate(self.tokens):
            if token.kind != "identifier" or token.text not in ("assert", "asm", "__asm__", "__asm"):
                continue
            if token.start not in device:
                continue
            if token.text == "assert":
                if self.assertions and "define NDEBUG" not in self.text:
                    self.edits.replace(token.start, token.end, "DICE_CPU_ASSERT")
            else:
                self._edit_assembly(i)

    def _edit_assembly(self, i: int) -> None:
        end = next((j for j in range(i, len(self.tokens)) if self.tokens[j].text == ";"), None)
        if end is None:
            raise SplitRefused("a statement without an end")
        text = source_of(self.text, self.tokens[i:end])
        translated = translate(self.tokens[i:end], self.text)
        if translated is None:
            literal = re.search(r'"([^"]*)"', text)
            raise UnsupportedOnCpu(f"inline PTX: {literal.group(1).strip()[:60] if literal else text[:60]}")
        self.edits.replace(self.tokens[i].start, self.tokens[end].start, translated)


def _first_argument(text: str) -> str:
    groups = at_commas(tokenize(text))
    if not groups:
        raise SplitRefused("launch bounds without a value")
    return source_of(text, groups[0])


def _plain(text: str) -> str:
    """One line, without comments."""
    return " ".join(token.text for token in tokenize(text))


def _dynamic_array(text: str, declaration: Sequence[Token]) -> tuple[str, str]:
    """Name and replacement of `extern __shared__ T name[]...`: a pointer to the block's dynamic shared memory."""
    words: list[Token] = []
    i = 0
    while i < len(declaration):
        token = declaration[i]
        if token.text in ("__align__", "alignas", "__attribute__") and i + 1 < len(declaration):
            i += 1 + max(declaration[i + 1].reach, 0)
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
