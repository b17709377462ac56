"""CUDA C++ text, split at namespace scope into items that say whether they belong to the device, the host, or both.

    split = split_source(text)            # raises SplitRefused(reason) rather than guess
    split.items                           # everything, in order; "".join(item.text ...) is `text` without comments
                                          # and white space between the items
    split.kernels                         # the items of kind "kernel" (definitions)
    split.synchronisation["my_kernel"]    # does it use, directly or through what it calls, barriers or warp operations
    rewrite_launches(item.text, render)   # `k<<<g, b>>>(x)` to whatever render(launch) returns (launch.py)
    shared_arrays(item.text)              # `extern __shared__ T x[]` declarations of a kernel

The splitter reads text, not meaning: it does not expand macros and does not look into included files. A source whose
macros would change the split (a macro that makes kernels, say) is first passed through `expand_macros`, which runs the
preprocessor with the source's own macros only.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from dice.kernels.cuda.declaration import EXECUTION_SPACES, MEMORY_SPACES, Function, parse_function
from dice.kernels.cuda.launch import find_launches
from dice.kernels.cuda.lexer import (
    SplitRefused,
    Token,
    identifiers,
    line_number,
    matching,
    matching_angle,
    source_of,
    tokenize,
)

ItemKind = Literal[
    "include",  # name: the file, without its quotes or angle brackets
    "macro",  # #define or #undef; name: the macro
    "directive",  # any other preprocessor line (#if, #pragma, ...)
    "scope_open",  # `namespace a {`, `extern "C" {`; name: the namespace, "" when anonymous or a linkage block
    "scope_close",  # the `}` of a scope
    "kernel",  # __global__ definition
    "kernel_declaration",  # __global__ prototype
    "device_function",  # __device__ only, definition or declaration
    "host_device_function",  # both execution spaces, or constexpr without any
    "host_function",  # definition
    "host_declaration",  # prototype
    "device_variable",  # __constant__, __device__, __managed__ or __shared__ at namespace scope
    "constant",  # const or constexpr variable, initialised
    "host_variable",  # any other variable
    "type",  # struct, class, union, enum, typedef, `using X = ...`, concept
    "using",  # using-directives and -declarations, namespace aliases, static_assert
    "instantiation",  # explicit instantiation `template ... k<float>(...);`
    "macro_call",  # `NAME(...)` with or without a block or semicolon, such as PYBIND11_MODULE(...) {...}
]

BARRIERS = frozenset(
    [
        "__syncthreads",
        "__syncthreads_and",
        "__syncthreads_or",
        "__syncthreads_count",
        "__barrier_sync",
        "__barrier_sync_count",
        "__syncwarp",
        "sync",
        "thread_rank",
        "barrier_arrive",
        "barrier_wait",
    ]
) - {"thread_rank"}
WARP_OPERATIONS = frozenset(
    [
        "__shfl",
        "__shfl_up",
        "__shfl_down",
        "__shfl_xor",
        "__shfl_sync",
        "__shfl_up_sync",
        "__shfl_down_sync",
        "__shfl_xor_sync",
        "__ballot",
        "__ballot_sync",
        "__any",
        "__any_sync",
        "__all",
        "__all_sync",
        "__activemask",
        "__match_any_sync",
        "__match_all_sync",
        "__syncwarp",
        "__reduce_add_sync",
        "__reduce_min_sync",
        "__reduce_max_sync",
        "__reduce_and_sync",
        "__reduce_or_sync",
        "__reduce_xor_sync",
        "shfl",
        "shfl_up",
        "shfl_down",
        "shfl_xor",
        "ballot",
        "any",
        "all",
    ]
)


@dataclass(frozen=True)
class Item:
    """One thing at namespace scope. `text` is source[start:end], verbatim.

    namespaces: names of the enclosing namespaces, outermost first ("" for an anonymous one).
    function: taken apart, for functions and kernels.
    line: of `start`, from 1.
    """

    kind: ItemKind
    name: str
    text: str
    start: int
    end: int
    line: int
    namespaces: tuple[str, ...] = ()
    function: Function | None = None

    @property
    def qualified_name(self) -> str:
        """Name with its namespaces, as other scopes would write it."""
        return "::".join([*(part for part in self.namespaces if part), self.name])

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """All identifiers in the text."""
        return frozenset(identifiers(self.text))


@dataclass(frozen=True)
class Synchronisation:
    """What a kernel uses, directly or through the device functions, macros and types that it names (never too little)."""

    barrier: bool
    warp: bool


@dataclass(frozen=True)
class SharedArray:
    """`extern __shared__ float x[];` in a kernel or at namespace scope. `start`, `end` are offsets in the text given.

    alignment: text of an `__align__(16)` or `alignas(16)` operand, or None.
    """

    name: str
    type: str
    alignment: str | None
    start: int
    end: int


@dataclass(frozen=True)
class Split:
    """The items of a source, in order."""

    text: str
    items: tuple[Item, ...]
    expanded: bool = False
    """Whether the source's own macros were expanded first (`text` is then the expanded text)."""
    _by_kind: dict[str, list[Item]] = field(default_factory=dict, compare=False, repr=False)

    def of_kind(self, *kinds: ItemKind) -> list[Item]:
        """Items of these kinds, in order."""
        return [item for item in self.items if item.kind in kinds]

    @property
    def kernels(self) -> list[Item]:
        """Kernel definitions."""
        return self.of_kind("kernel")

    @cached_property
    def synchronisation(self) -> dict[str, Synchronisation]:
        """Kernel name -> what it uses (kernels of one name are taken together)."""
        barrier = self.users_of(BARRIERS)
        warp = self.users_of(WARP_OPERATIONS)
        return {k.name: Synchronisation(k.name in barrier, k.name in warp) for k in self.kernels}

    def users_of(self, names: frozenset[str]) -> set[str]:
        """Names of items whose text mentions one of `names`, or the name of such an item, and so on."""
        named = [item for item in self.items if item.kind not in ("include", "scope_open", "scope_close")]
        provides = {id(item): self._names_provided(item) for item in named}
        reached: set[str] = set(names)
        users: set[str] = set()
        changed = True
        while changed:
            changed = False
            for item in named:
                mentioned = item.identifiers - (frozenset() if item.kind == "type" else {item.name})
                if item.name not in users and mentioned & reached:
                    users.add(item.name)
                    reached |= provides[id(item)]
                    changed = True
        return users

    @staticmethod
    def _names_provided(item: Item) -> set[str]:
        """Names under which the code of an item can be reached: its own, and for a type those of its members."""
        return {item.name} | (set(_CALLED.findall(item.text)) if item.kind == "type" else set())


_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_INCLUDE = re.compile(r"#\s*include\s*[<\"]([^>\"]+)[>\"]")
_DEFINE = re.compile(r"#\s*(?:define|undef)\s+([A-Za-z_]\w*)(\()?")
_CONDITIONAL = re.compile(r"#\s*(if|ifdef|ifndef|elif|else|endif)\b")
_KEPT = re.compile(r"#\s*(include|pragma)\b")
_CLASS_KEYS = frozenset({"struct", "class", "union", "enum"})
_SHAPING = re.compile(
    r"__global__|__device__|__host__|__constant__|__shared__|\btemplate\b|\bnamespace\b|\bstruct\b|[{};]|\bextern\b"
)


def split_source(text: str) -> Split:
    """Split `text`. Raises SplitRefused when its shape is not certain.

    Macros of the source that would change the split are expanded first (`Split.expanded`).
    """
    if _macros_change_the_split(text):
        return Split(expanded := expand_macros(text), tuple(_Reader(expanded).read()), expanded=True)
    return Split(text, tuple(_Reader(text).read()))


def shared_arrays(text: str) -> list[SharedArray]:
    """The `extern __shared__` declarations in `text`. Raises SplitRefused for one that declares several names."""
    tokens = tokenize(text)
    arrays = []
    for i, token in enumerate(tokens):
        if token.text != "extern" or token.kind != "identifier":
            continue
        end = next((j for j in range(i, len(tokens)) if tokens[j].text == ";"), None)
        if end is None or not any(t.text == "__shared__" for t in tokens[i:end]):
            continue
        declaration = list(tokens[i:end])
        alignment = None
        for j, part in enumerate(declaration):
            if part.text in ("__align__", "alignas") and declaration[j + 1].text == "(":
                closing = matching(declaration, j + 1)
                alignment = source_of(text, declaration[j + 2 : closing])
                del declaration[j : closing + 1]
                break
        bracket = next((j for j, part in enumerate(declaration) if part.text == "["), None)
        if bracket is None or any(part.text == "," for part in declaration):
            raise SplitRefused(f"an unusual extern __shared__ declaration at line {line_number(text, token.start)}")
        words = [part for part in declaration[: bracket - 1] if part.text not in ("extern", "__shared__")]
        arrays.append(
            SharedArray(
                name=declaration[bracket - 1].text,
                type=" ".join(part.text for part in words),
                alignment=alignment,
                start=token.start,
                end=tokens[end].end,
            )
        )
    return arrays


def expand_macros(text: str) -> str:
    """`text` with its own macros expanded by the C++ preprocessor; includes and pragmas stay, `#define`s vanish.

    Raises SplitRefused when a condition depends on anything but the source's own macros, since headers are not read.
    """
    own = {match.group(1) for match in _DEFINE.finditer(text)}
    for token in tokenize(text):
        match = _CONDITIONAL.match(token.text) if token.kind == "directive" else None
        if match and match.group(1) not in ("else", "endif"):
            unknown = set(re.findall(r"[A-Za-z_]\w*", token.text[match.end() :])) - own - {"defined"}
            if unknown:
                raise SplitRefused(f"macros must be expanded, but a condition depends on {sorted(unknown)[0]}")
    kept = [t for t in tokenize(text) if t.kind == "directive" and _KEPT.match(t.text)]
    marked, position = "", 0
    for i, token in enumerate(kept):
        marked += text[position : token.start] + f"__dice_kept_line_{i}__"
        position = token.end
    marked += text[position:]
    done = subprocess.run(
        ["g++", "-E", "-P", "-undef", "-nostdinc", "-x", "c++", "-std=c++20", "-"],
        input=marked,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if done.returncode != 0:
        raise SplitRefused(f"macros cannot be expanded: {done.stderr.strip().splitlines()[0] if done.stderr else '?'}")
    return re.sub(r"\s*__dice_kept_line_(\d+)__\s*", lambda match: f"\n{kept[int(match.group(1))].text}\n", done.stdout)


def _macros_change_the_split(text: str) -> bool:
    """Whether a macro of the source is used at namespace scope and its body declares something.

    Launches need no expansion: they are rewritten inside the macro's body.
    """
    tokens = tokenize(text)
    shaping = set()
    for token in tokens:
        match = _DEFINE.match(token.text) if token.kind == "directive" else None
        if match and _SHAPING.search(token.text[match.end() :]):
            shaping.add(match.group(1))
    if not shaping:
        return False
    depth = 0
    for token in tokens:
        if token.kind == "punctuator":
            depth += {"{": 1, "}": -1}.get(token.text, 0)
        elif token.kind == "identifier" and token.text in shaping and depth == 0:
            return True
    return False


class _Reader:
    """Reads items from the front of the token list; keeps the open scopes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.scopes: list[str | None] = []  # None: a linkage block

    def read(self) -> list[Item]:
        items: list[Item] = []
        i = 0
        while i < len(self.tokens):
            if self.tokens[i].text == ";" and self.tokens[i].kind == "punctuator":
                i += 1
                continue
            item, i = self._next(i)
            items.append(item)
        if self.scopes:
            raise SplitRefused("a namespace is never closed")
        return items

    def _item(self, kind: ItemKind, name: str, first: int, last: int, function: Function | None = None) -> Item:
        start, end = self.tokens[first].start, self.tokens[last].end
        namespaces = tuple(scope for scope in self.scopes if scope is not None)
        line = line_number(self.text, start)
        return Item(kind, name, self.text[start:end], start, end, line, namespaces, function)

    def _next(self, i: int) -> tuple[Item, int]:
        token = self.tokens[i]
        if token.kind == "directive":
            return self._directive(i), i + 1
        if token.text == "}":
            if not self.scopes:
                raise SplitRefused(f"an unmatched }} at line {line_number(self.text, token.start)}")
            self.scopes.pop()
            return self._item("scope_close", "", i, i), i + 1
        scope = self._scope(i)
        if scope is not None:
            return scope
        last, body, kind_hint = self._extent(i)
        return self._classify(i, last, body, kind_hint), last + 1

    def _directive(self, i: int) -> Item:
        text = self.tokens[i].text
        if match := _INCLUDE.match(text):
            return self._item("include", match.group(1), i, i)
        if match := _DEFINE.match(text):
            return self._item("macro", match.group(1), i, i)
        return self._item("directive", "", i, i)

    def _scope(self, i: int) -> tuple[Item, int] | None:
        words = [t.text for t in self.tokens[i : i + 3]]
        if words[:2] == ["extern", '"C"'] and words[2:] == ["{"]:
            item = self._item("scope_open", "", i, i + 2)
            self.scopes.append(None)
            return item, i + 3
        j = i + 1 if words[0] == "inline" and words[1:2] == ["namespace"] else i
        if self.tokens[j].text != "namespace":
            return None
        brace = j
        while brace < len(self.tokens) and self.tokens[brace].text not in ("{", ";", "="):
            brace += 1
        if brace >= len(self.tokens) or self.tokens[brace].text != "{":
            return None
        name = "".join(t.text for t in self.tokens[j + 1 : brace])
        item = self._item("scope_open", name, i, brace)
        self.scopes.append(name)
        return item, brace + 1

    def _extent(self, i: int) -> tuple[int, int | None, str]:
        """(index of the last token, index of the `{` of a function body or None, hint) of the declaration at `i`.

        hint: "type" for a class or enum with members, "call" for a macro call without `;`, else "".
        """
        tokens = self.tokens
        parameters = assigned = class_key = initialisers = False
        previous = ""
        first = i
        while i < len(tokens):
            token = tokens[i]
            if token.kind == "directive":
                raise SplitRefused(
                    f"a preprocessor line inside a declaration at line {line_number(self.text, token.start)}"
                )
            if token.text == ";" and token.kind == "punctuator":
                return i, None, ""
            if token.text == "<" and (previous == "template" or (tokens[i - 1].kind == "identifier" and not assigned)):
                i = matching_angle(tokens, i)
            elif token.text in ("(", "[") and token.kind == "punctuator":
                i = self._close(i)
                parameters = parameters or token.text == "("
                if token.text == "(" and self._is_bare_call(first, i):
                    return i, None, "call"
            elif token.text == "=" and previous != "operator":
                assigned = True
            elif token.text in _CLASS_KEYS and not parameters and not assigned:
                class_key = True
            elif token.text == "{":
                closing = self._close(i)
                if class_key and not assigned and not parameters:
                    return self._until_semicolon(closing), None, "type"
                member = initialisers and (tokens[i - 1].kind == "identifier" or previous == ">")  # x{1}
                if parameters and not assigned and not member:
                    return closing, i, ""
                i = closing
            elif token.text == "}":
                break
            elif token.text == ":" and parameters:
                initialisers = True
            previous = tokens[i].text
            i += 1
        raise SplitRefused(f"a declaration without an end at line {line_number(self.text, tokens[first].start)}")

    def _close(self, i: int) -> int:
        closing = matching(self.tokens, i)
        if any(t.kind == "directive" and _CONDITIONAL.match(t.text) for t in self.tokens[i:closing]):
            self._check_conditionals(i, closing)
        return closing

    def _check_conditionals(self, first: int, last: int) -> None:
        """Refuse blocks whose brackets match only when both branches of an #if are taken together."""
        depth = 0
        levels: list[int] = []
        for token in self.tokens[first : last + 1]:
            if token.kind == "punctuator":
                depth += (token.text in "([{") - (token.text in ")]}")
            elif token.kind == "directive" and (match := _CONDITIONAL.match(token.text)):
                if match.group(1).startswith("if"):
                    levels.append(depth)
                elif not levels or levels[-1] != depth:
                    raise SplitRefused("brackets that depend on an #if")
                elif match.group(1) == "endif":
                    levels.pop()
        if levels:
            raise SplitRefused("an #if that is not closed in its block")

    def _is_bare_call(self, first: int, closing: int) -> bool:
        """NAME(...) followed by the start of another declaration: a macro call that needs no semicolon."""
        if self.tokens[first].kind != "identifier" or self.tokens[first + 1].text != "(":
            return False
        if closing + 1 >= len(self.tokens):
            return True
        following = self.tokens[closing + 1]
        if self.tokens[first].text in ("static_assert", "alignas", "__attribute__", "__launch_bounds__", "decltype"):
            return False
        if self.tokens[first].text in ("__align__", "asm", "__asm__"):
            return False
        return following.kind in ("identifier", "directive")

    def _until_semicolon(self, i: int) -> int:
        while i < len(self.tokens) and self.tokens[i].text != ";":
            if self.tokens[i].text in "([{" and self.tokens[i].kind == "punctuator":
                i = self._close(i)
            i += 1
        if i >= len(self.tokens):
            raise SplitRefused("a type without its semicolon")
        return i

    def _classify(self, first: int, last: int, body: int | None, hint: str) -> Item:
        tokens = self.tokens[first : last + 1]
        words = [t.text for t in tokens]
        if hint == "call":
            return self._item("macro_call", words[0], first, last)
        if words[0] == "using" and "=" in words:
            return self._item("type", words[1], first, last)
        if words[0] in ("using", "namespace", "static_assert", "asm", "__asm__"):
            return self._item("using", words[-2] if len(words) > 1 else "", first, last)
        if words[0] == "template" and words[1:2] != ["<"]:
            return self._item("instantiation", "", first, last)
        if words[0] == "extern" and words[1:2] == ["template"]:
            return self._item("instantiation", "", first, last)
        if words[0] == "typedef" or hint == "type" or self._is_alias(tokens):
            if MEMORY_SPACES & set(words[: words.index("{") if "{" in words else len(words)]):
                raise SplitRefused("a device variable of a type defined in place")
            return self._item("type", self._type_name(tokens), first, last)
        function = None
        if body is not None or not self._is_variable(tokens):
            head = tokens if body is not None else tokens[:-1]
            function = parse_function(self.text, head, None if body is None else body - first)
        if function is None:
            if body is not None:
                raise SplitRefused(f"an unusual function at line {line_number(self.text, tokens[0].start)}")
            return self._variable(first, last, tokens)
        return self._function(first, last, function)

    def _is_alias(self, tokens: Sequence[Token]) -> bool:
        """`template <..> using X = ..`, `template <..> concept ..`, and forward declarations of classes."""
        i = 0
        while tokens[i].text == "template":
            i = matching_angle(tokens, i + 1) + 1
        words = [t.text for t in tokens[i:]]
        if words[0] in ("using", "concept"):
            return True
        return words[0] in _CLASS_KEYS and len([w for w in words if w not in ("class",)]) <= 4 and "(" not in words

    @staticmethod
    def _type_name(tokens: Sequence[Token]) -> str:
        i = 0
        while tokens[i].text == "template":
            i = matching_angle(tokens, i + 1) + 1
        words = list(tokens[i:])
        if words[0].text == "typedef":
            names = [t.text for t in words if t.kind == "identifier"]
            return names[-1]
        for j, token in enumerate(words):
            if token.text in _CLASS_KEYS | {"using", "concept"}:
                rest = words[j + 1 :]
                while rest and (rest[0].text in ("class", "struct", "__align__", "alignas", "__attribute__")):
                    skip = 1
                    if len(rest) > 1 and rest[1].text == "(":
                        skip = matching(rest, 1) + 1
                    rest = rest[skip:]
                return rest[0].text if rest and rest[0].kind == "identifier" else ""
        return ""

    @staticmethod
    def _is_variable(tokens: Sequence[Token]) -> bool:
        words = {t.text for t in tokens}
        return bool(words & MEMORY_SPACES) and "(" not in {t.text for t in _without_attributes(tokens)}

    def _variable(self, first: int, last: int, tokens: Sequence[Token]) -> Item:
        words = [t.text for t in tokens]
        name = _variable_name(tokens)
        initialiser = words.index("=") if "=" in words else len(words)
        if MEMORY_SPACES & set(words[:initialiser]):
            return self._item("device_variable", name, first, last)
        if ("const" in words[:initialiser] or "constexpr" in words[:initialiser]) and "*" not in words[:initialiser]:
            return self._item("constant", name, first, last)
        return self._item("host_variable", name, first, last)

    def _function(self, first: int, last: int, function: Function) -> Item:
        spaces = set(function.specifiers) & EXECUTION_SPACES
        defined = function.body is not None
        kind: ItemKind
        if "__global__" in spaces:
            kind = "kernel" if defined else "kernel_declaration"
        elif spaces == {"__device__"}:
            kind = "device_function"
        elif "__device__" in spaces or (defined and "constexpr" in function.specifiers and not spaces):
            kind = "host_device_function"
        elif not function.return_type and not spaces and "::" not in function.declarator:
            return self._item("macro_call", function.name, first, last)
        else:
            kind = "host_function" if defined else "host_declaration"
        if kind in ("kernel", "device_function") and function.body is not None and find_launches(function.body):
            raise SplitRefused("a launch inside device code")
        return self._item(kind, function.name, first, last, function)


def _without_attributes(tokens: Sequence[Token]) -> list[Token]:
    kept: list[Token] = []
    i = 0
    while i < len(tokens):
        if tokens[i].text in ("__align__", "alignas", "__attribute__") and tokens[i + 1].text == "(":
            i = matching(tokens, i + 1)
        elif tokens[i].text == "=":
            break
        else:
            kept.append(tokens[i])
        i += 1
    return kept


def _variable_name(tokens: Sequence[Token]) -> str:
    """The (first) declared name: the last identifier before `=`, `[`, `{`, `,` or `;`."""
    name = ""
    plain = _without_attributes(tokens)
    i = 0
    while i < len(plain):
        token = plain[i]
        if token.text in ("[", "{", ",", ";", "("):
            break
        if token.text == "<" and i > 0 and plain[i - 1].kind == "identifier":
            i = matching_angle(plain, i)
        elif token.kind == "identifier":
            name = token.text
        i += 1
    return name
