"""Arguments and text of one kernel launch, shared by the kernel, its host function and the caller."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dice.data.synthetic.builder import free_name
from dice.data.synthetic.draw import LOCAL_NAMES, Words
from dice.data.synthetic.graph import Map, Operand, Scalar, Total, Value

WIDTH = 110
"""Longer argument lists are written with one argument per line."""
_DATA = {"float": "float", "int64": "int64_t", "bool": "bool"}
_KINDS = {"float": "torch::kFloat32", "int64": "torch::kLong", "bool": "torch::kBool"}


def literal(value: float) -> str:
    """A C float literal."""
    return f"{float(value)!r}f"


def indent(lines: Iterable[str], by: int = 4) -> list[str]:
    """Shift lines to the right."""
    space = " " * by
    return [space + line if line else line for line in lines]


def block(head: str, lines: Iterable[str]) -> list[str]:
    """`lines` in braces behind `head`."""
    return [f"{head} {{", *indent(lines), "}"]


def arguments(head: str, items: list[str], tail: str, width: int = WIDTH) -> str:
    """`head(a, b, c)tail` on one line where it fits."""
    line = f"{head}({', '.join(items)}){tail}"
    inner = ",\n    ".join(items)
    return line if len(line) <= width else f"{head}(\n    {inner}\n){tail}"


@dataclass(slots=True)
class Function:
    """A host function with its kernels, ready to be printed."""

    name: str
    helpers: dict[str, str]
    """Device functions by name; shared ones are printed once."""
    kernels: str
    host: str
    declaration: str
    args: tuple[Value | Scalar, ...]
    """Arguments of the call, in order."""


@dataclass(slots=True)
class Scope:
    """Collects tensors, scalars and sizes in the order of their first use."""

    words: Words
    label: str
    taken: set[str] = field(default_factory=set)
    tensors: dict[Value, str] = field(default_factory=dict)
    scalars: dict[Scalar, str] = field(default_factory=dict)
    sizes: dict[str, str] = field(default_factory=dict)
    """C name to host expression."""
    late: set[str] = field(default_factory=set)
    """Sizes that need the output tensor."""
    helpers: dict[str, str] = field(default_factory=dict)
    """Device functions by name."""
    out_dtype: str = "float"

    @property
    def out_type(self) -> str:
        """C++ type of the output's elements."""
        return _DATA[self.out_dtype]

    def options(self, tensor: str) -> str:
        """Host text of the output's options, which are those of `tensor` but perhaps for the type."""
        own = next(value.dtype for value, name in self.tensors.items() if name == tensor)
        return f"{tensor}.options()" + ("" if own == self.out_dtype else f".dtype({_KINDS[self.out_dtype]})")

    def new(
        self, like: str, sizes: Iterable[str] = (), keys: Mapping[str, str] | None = None, made: str = "empty"
    ) -> str:
        """Host text of an output of these sizes, a single number where there are none."""
        return f"torch::{made}({{{', '.join(size.format(**(keys or {})) for size in sizes)}}}, {self.options(like)})"

    def empty_like(self, tensor: str) -> str:
        """Host text of an output of the shape of `tensor`."""
        options = self.options(tensor)
        return f"torch::empty_like({tensor}" + (")" if options.endswith("()") else f", {options})")

    @property
    def thread(self) -> str:
        """Number of this thread in the whole launch."""
        return f"blockIdx.x * {self.words.block if self.words.short else 'blockDim.x'} + threadIdx.x"

    def __post_init__(self) -> None:
        self.taken = self.words.reserved

    def fresh(self, base: str) -> str:
        """A free C name."""
        name = free_name(base, self.taken.__contains__)
        self.taken.add(name)
        return name

    def tensor(self, value: Value) -> str:
        """C name of a tensor, in the kernel and on the host."""
        if value not in self.tensors:
            self.tensors[value] = self.fresh(value.name)
        return self.tensors[value]

    def scalar(self, scalar: Scalar) -> str:
        """Text of a hyper-parameter in the kernel: literal, or an argument."""
        if scalar.literal:
            return literal(scalar.value)
        if scalar not in self.scalars:
            self.scalars[scalar] = self.fresh(scalar.name)
        return self.scalars[scalar]

    def size(self, base: str, expression: str, late: bool = False) -> str:
        """C name of an int that the host computes."""
        for name, known in self.sizes.items():
            if known == expression:
                return name
        if base == self.words.size:  # reserved, so that no tensor takes it
            self.taken.discard(base)
        name = self.fresh(base)
        self.sizes[name] = expression
        if late:
            self.late.add(name)
        return name

    def local(self, key: str) -> str:
        """The author's name for a local variable."""
        pool = LOCAL_NAMES[key]
        return self.fresh(pool[self.words.synonyms % len(pool)])

    def keys(
        self, sizes: Mapping[str, str], operands: Mapping[str, Value], scalars: Mapping[str, Scalar], x: str
    ) -> dict[str, str]:
        """Format keys of a body: its operands, scalars and sizes with their names in this kernel."""
        keys = {"x": x}
        for key, value in operands.items():
            keys[key] = self.tensor(value)
        for key, expression in sizes.items():
            keys[key] = expression if expression.isdigit() else self.size(key, expression.format(**keys))
        for key, scalar in scalars.items():
            keys[key] = self.scalar(scalar)
        return keys

    # element-wise -------------------------------------------------------------------------------------------------
    def access(self, operand: Operand, index: str, like: str) -> str:
        """Element of a broadcast operand for linear `index` into a tensor called `like` on the host."""
        name = self.tensor(operand.value)
        late = like == self.words.out
        if operand.access == "same":
            return f"{name}[{index}]"
        if operand.access == "one":
            return f"{name}[0]"
        atom = index if index.isidentifier() else f"({index})"
        if operand.access == "last":
            return f"{name}[{atom} % {self.size('C', f'{name}.numel()')}]"
        if operand.access == "row":
            return f"{name}[{atom} / {self.size('stride', f'{like}.numel() / {name}.numel()', late)}]"
        channels = self.size("C", f"{name}.numel()")
        inner = " * ".join(f"{like}.size({axis})" for axis in range(2, 2 + len(operand.value.shape) - 1))
        return f"{name}[({atom} / {self.size('inner', inner, late)}) % {channels}]"

    def element_keys(self, body: Map | Total, value: str, index: str, like: str) -> dict[str, str]:
        """Format keys of an element-wise body for `value` at `index`."""
        keys = {"v": value}
        keys |= {key: self.access(operand, index, like) for key, operand in body.operands.items()}
        return keys | {key: self.scalar(scalar) for key, scalar in body.scalars.items()}

    def map_expression(self, body: Map, value: str, index: str, like: str) -> str:
        """The operator applied to `value` at `index`."""
        return body.expr.format(**self.element_keys(body, value, index, like))

    def apply(self, maps: Iterable[Map], index: str, like: str) -> list[str]:
        """Statements that run element-wise operators on the running value."""
        v = self.words.value
        texts = [self.map_expression(body, v, index, like) for body in maps]
        return [f"{v} = {text};" for text in texts if text != v]

    def store(self, maps: Iterable[Map], index: str, like: str, first: str | None = None) -> list[str]:
        """Statements that run `maps` on the running value (`first`: expression that it starts from) and store it."""
        v, out, maps = self.words.value, self.words.out, list(maps)
        if first is not None and not maps:
            return [f"{out}[{index}] = {first};"]
        lines = [] if first is None else [f"float {v} = {first};"]
        if maps and self.words.merge_store:
            lines += self.apply(maps[:-1], index, like)
            return [*lines, f"{out}[{index}] = {self.map_expression(maps[-1], v, index, like)};"]
        return [*lines, *self.apply(maps, index, like), f"{out}[{index}] = {v};"]

    # text ---------------------------------------------------------------------------------------------------------
    def kernel_name(self, suffix: str = "") -> str:
        return self.words.kernel.format(self.label + suffix)

    def kernel(self, name: str, body: Iterable[str], out: str = "") -> str:
        """Text of a `__global__` function."""
        w = self.words
        restrict = " __restrict__" if w.restrict else ""
        const = "" if w.short else "const "
        items = [f"{const}{_DATA[value.dtype]}*{restrict} {tensor}" for value, tensor in self.tensors.items()]
        items.append(out or f"{self.out_type}*{restrict} {w.out}")
        items += [f"float {scalar}" for scalar in self.scalars.values()]
        items += [f"int {size}" for size in self.sizes]
        return "\n".join([arguments(f"__global__ void {name}", items, " {"), *indent(body), "}\n"])

    def launch(self, name: str, out: str = "") -> str:
        """The launch with the placeholder `{config}` for its configuration."""
        items = [f"{tensor}.data_ptr<{_DATA[value.dtype]}>()" for value, tensor in self.tensors.items()]
        items.append(out or f"{self.words.out}.data_ptr<{self.out_type}>()")
        items += [*self.scalars.values(), *self.sizes]
        return arguments(f"{name}<<<{{config}}>>>", items, ";")

    def function(self, kernels: str, alloc: str, body: Iterable[str]) -> Function:
        """`kernels` with the host function around `body` (launch statements)."""
        w = self.words
        name = w.function.format(self.label)
        lines = []
        if w.checks:
            for value, tensor in self.tensors.items():
                lines.append(f'TORCH_CHECK({tensor}.is_contiguous(), "{tensor} must be contiguous");')
                if value.dtype == "float":
                    lines.append(f'TORCH_CHECK({tensor}.scalar_type() == torch::kFloat32, "{tensor} must be float32");')
            del lines[3:]
        if w.contiguous:
            lines += [f"{tensor} = {tensor}.contiguous();" for tensor in self.tensors.values()]
        early = [item for item in self.sizes.items() if item[0] not in self.late]
        late = [item for item in self.sizes.items() if item[0] in self.late]
        lines += [f"{w.constants} {size} = {expression};" for size, expression in early]
        lines.append(f"auto {w.out} = {alloc};")
        lines += [f"{w.constants} {size} = {expression};" for size, expression in late]
        lines += body
        lines.append(f"return {w.out};")
        items = [f"torch::Tensor {tensor}" for tensor in self.tensors.values()]
        items += [f"{w.floating} {scalar}" for scalar in self.scalars.values()]
        head, declaration = f"torch::Tensor {name}", f"torch::Tensor {name}({', '.join(items)});"
        text = "\n".join([arguments(head, items, " {", WIDTH + 12), *indent("\n".join(lines).split("\n")), "}\n"])
        return Function(name, self.helpers, kernels, text, declaration, (*self.tensors, *self.scalars))

    def one_kernel(
        self, lines: Iterable[str], alloc: str, blocks: str, threads: int | str, shared: str = "", suffix: str = ""
    ) -> Function:
        """The host function of a kernel with these statements."""
        name = self.kernel_name(suffix)
        launch = self.configured(self.launch(name), blocks, threads, shared)
        return self.function(self.kernel(name, lines), alloc, launch)

    def guarded(self, lines: list[str], count: str) -> list[str]:
        """Statements of the threads whose number is below `count`."""
        i = self.words.index
        first = f"int {i} = {self.thread};"
        if self.words.early_return:
            return [first, f"if ({i} >= {count}) return;", *lines]
        return [first, *block(f"if ({i} < {count})", lines)]

    def configured(self, launch: str, blocks: str, threads: int | str, shared: str = "") -> list[str]:
        """Launch statements in the author's style. `blocks` and `threads`: int texts or `a, b` for dim3."""
        w, threads = self.words, str(threads)
        if w.short:
            blocks = re.sub(r"\((\w+|\([^()]*\)) \+ \{(\d+)\} - 1\) / \{\2\}", r"\1 / \2 + 1", blocks)
        size, grid = w.launch
        lines = []
        if w.dim3 or "," in threads + blocks:
            size, grid = ("threads", "blocks") if "block" in size else ("block", "grid")
            lines = [f"dim3 {size}({threads});", f"dim3 {grid}({_numbers(blocks, threads)});"]
        elif size:
            declared = blocks.replace(f"{{{threads}}}", size)
            lines = [f"const int {size} = {threads};", f"const int {grid} = {declared};"]
        else:
            size, grid = threads, _numbers(blocks, threads)
        return [*lines, launch.replace("{config}", f"{grid}, {size}" + (f", {shared}" if shared else ""))]


def _numbers(blocks: str, threads: str) -> str:
    """`blocks` with the number of threads inserted, and products with it worked out."""
    if threads.isdigit():
        blocks = re.sub(r"(\d+) \* \{\d+\}", lambda match: f"{{{int(match[1]) * int(threads)}}}", blocks)
        blocks = re.sub(r"\{(\d+)\} - 1", lambda match: str(int(match[1]) - 1), blocks)
        blocks = re.sub(r"\(\{(\d+)\}\)", r"\1", blocks)
    return blocks.replace("{", "").replace("}", "")


def ceil_div(count: str, threads: int, per_thread: int = 1) -> str:
    """Host text of ceil(count / (threads * per_thread)); braces mark where the author can write a name."""
    atom = count if count.isidentifier() else f"({count})"
    if per_thread > 1:
        return f"({atom} + {per_thread} * {{{threads}}} - 1) / ({per_thread} * {{{threads}}})"
    return f"({atom} + {{{threads}}} - 1) / {{{threads}}}"
