"""CUDA C++ text, split at namespace scope into items that say whether they belong to the device, the host, or both.

    split = split_source(text)            # raises SplitRefused(reason) rather than guess
    split.items                           # everything, in order; "".join(item.text ...) is `text` without comments
                                          # and white space between the items
    split.kernels                         # the items of kind "kernel" (definitions)
    rewrite_launches(item.text, render)   # `k<<<g, b>>>(x)` to whatever render(launch) returns (launch.py)

The splitter reads text, not meaning: it does not expand macros and does not look into included files. A source whose
macros would change the split (a macro that makes kernels, say) is first passed through `expand_macros`, which runs the
preprocessor with the source's own macros only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dice.kernels.source.declaration import EXECUTION_SPACES, MEMORY_SPACES, Function, parse_function
from dice.kernels.source.launch import find_launches
from dice.kernels.source.lexer import (
    SplitRefused,
    Token,
    line_number,
    matching,
    matching_angle,
    tokenize,
)
from dice.kernels.source.macros import CONDITIONAL, DEFINE, expand_macros, macros_change_the_split
from dice.kernels.source.split import Item, ItemKind, Split

_INCLUDE = re.compile(r"#\s*include\s*[<\"]([^>\"]+)[>\"]")
_CLASS_KEYS = frozenset({"struct", "class", "union", "enum"})


def split_source(text: str) -> Split:
    """Split `text`. Raises SplitRefused when its shape is not certain.

    Macros of the source that would change the split are expanded first (`Split.expanded`).
    """
    if macros_change_the_split(text):
        return Split(expanded := expand_macros(text), tuple(_Reader(expanded).read()), expanded=True)
    return Split(text, tuple(_Reader(text).read()))


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
        if match := DEFINE.match(text):
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
        if any(t.kind == "directive" and CONDITIONAL.match(t.text) for t in self.tokens[i:closing]):
            self._check_conditionals(i, closing)
        return closing

    def _check_conditionals(self, first: int, last: int) -> None:
        """Refuse blocks whose brackets match only when both branches of an #if are taken together."""
        depth = 0
        levels: list[int] = []
        for token in self.tokens[first : last + 1]:
            if token.kind == "punctuator":
                depth += (token.text in "([{") - (token.text in ")]}")
            elif token.kind == "directive" and (match := CONDITIONAL.match(token.text)):
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
