"""main.cpp of an extension: what stock would write, and what the binding table makes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from dice.kernels.builder.binding import PYBIND_ALIAS, BindingRefused, table_from_functions, table_from_module
from dice.kernels.source.cuda_source import CudaSource, split_source
from dice.kernels.source.items import Item
from dice.kernels.source.lexer import SplitRefused, tokenize, words
from dice.kernels.source.macros import Preprocess

_SHARED_HEADERS = words(
    "torch/extension.h torch/torch.h torch/types.h torch/all.h vector string tuple optional utility cstdint memory "
    "functional map unordered_map algorithm cmath array iostream sstream"
)
_TYPE_WORDS = words(
    "torch at c10 std Tensor TensorList vector tuple optional nullopt string pair array int64_t int32_t int16_t "
    "int8_t uint64_t uint32_t uint8_t size_t ScalarType Dtype Device IntArrayRef Scalar TensorOptions ArrayRef const "
    "void bool char short int long unsigned signed float double auto inline"
)


@dataclass(frozen=True)
class MainUnit:
    """`text`: the candidate's C++ without the lines that load_inline adds. Every render takes the module's name.

    functions: (name, docstring) pairs of load_inline, or None. source: the file's name for `#line`. preprocess: as for
    `split_source`.
    """

    text: str
    functions: tuple[tuple[str, str], ...] | None
    torch_errors: bool
    source: str
    implicit_header: bool = True
    preprocess: Preprocess | None = None

    def stock_text(self) -> str:
        """Exactly what `load_inline` writes to main.cpp (torch/utils/cpp_extension.py, load_inline)."""
        lines = (["#include <torch/extension.h>"] if self.implicit_header else []) + [self.text]
        if self.functions is not None:
            lines.append("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {")
            for name, doc in self.functions:
                bound = f"torch::wrap_pybind_function({name})" if self.torch_errors else name
                lines.append(f'm.def("{name}", {bound}, "{doc}");')
            lines.append("}")
        return "\n".join(lines)

    def exact(self, module: str) -> str:
        """The stock text as a unit that starts from the header `extension` (or any that contains it)."""
        return f'#define TORCH_EXTENSION_NAME {module}\n#line 1 "{self.source}"\n{self.stock_text()}\n'

    def with_table(self, module: str) -> str:
        """The candidate's C++ with the binding table. Raises SplitRefused (BindingRefused for the binding alone)."""
        return self._user_text(module) + (self._function_table(module) if self.functions is not None else "")

    def _function_table(self, module: str) -> str:
        assert self.functions is not None
        if any(not re.fullmatch(r"[\w:]+", name) for name, _ in self.functions):
            raise BindingRefused("a bound function that is not a plain name")
        return table_from_functions(self.functions, self.torch_errors, module)

    def _user_text(self, module: str) -> str:
        """The C++ itself, a PYBIND11_MODULE in it replaced by a table."""
        first_line = 2 if self.implicit_header else 1
        if not re.search(r"PYBIND11_MODULE|TORCH_EXTENSION_NAME|TORCH_LIBRARY|py\b|pybind11", self.text):
            return f'#line {first_line} "{self.source}"\n{self.text}\n'
        pieces, position = [f'#line {first_line} "{self.source}"\n'], 0
        modules = 0
        for item in self.split.items:
            replacement = None
            if item.kind == "macro_call" and item.name == "PYBIND11_MODULE":
                modules += 1
                replacement = table_from_module(item.text, module) + f'#line {item.line + first_line} "{self.source}"\n'
            elif item.kind == "using" and PYBIND_ALIAS.fullmatch(item.text):
                replacement = ""
            elif "TORCH_EXTENSION_NAME" in item.identifiers or item.name.startswith("TORCH_LIBRARY"):
                raise BindingRefused("the extension's name in an unusual place")
            if replacement is not None:
                pieces += [self.text[position : item.start], replacement]
                position = item.end
        if modules + (self.functions is not None) > 1:
            raise BindingRefused("two modules in one extension")
        return "".join([*pieces, self.text[position:], "\n"])

    @cached_property
    def split(self) -> CudaSource:
        """The items of `text`."""
        if "__global__" in self.text or "<<<" in self.text:
            raise SplitRefused("CUDA code in a C++ source")
        return split_source(self.text, self.preprocess)

    def fits_before(self, cuda: CudaSource) -> bool:
        """Whether this unit may stand before the .cu in one unit and change nothing of what the .cu means.

        That holds for plain prototypes of functions that the .cu does not name before it declares them itself.
        """
        if self.functions is None and "PYBIND11_MODULE" not in self.text:
            return False
        declared: set[str] = set()
        for item in self.split.items:
            if item.kind == "include" and item.name in _SHARED_HEADERS:
                continue
            if item.kind == "host_declaration" and item.function is not None:
                if item.function.specifiers or item.function.linkage_c or not self._plain_prototype(item):
                    return False
                declared.add(item.name)
            elif item.kind == "using" and PYBIND_ALIAS.fullmatch(item.text):
                continue
            elif not (item.kind == "macro_call" and item.name == "PYBIND11_MODULE"):
                return False
        return not self._named_too_early(declared, cuda)

    @staticmethod
    def _plain_prototype(item: Item) -> bool:
        function = item.function
        assert function is not None
        if function.template_head or function.attributes or function.suffix:
            return False
        types = [function.return_type, *(parameter.type for parameter in function.parameters)]
        named = {t.text for text in types for t in tokenize(text) if t.kind == "identifier"}
        return named <= _TYPE_WORDS and all(parameter.default is None for parameter in function.parameters)

    @staticmethod
    def _named_too_early(declared: set[str], cuda: CudaSource) -> bool:
        seen: set[str] = set()
        for item in cuda.items:
            own = {item.name} if item.kind in ("host_function", "host_declaration") else set()
            if (item.identifiers & declared) - seen - own:
                return True
            seen |= own
        return False
