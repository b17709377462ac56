"""Reads tokens of CUDA C++ into items at namespace scope and into functions, wherever those stand.

It reads text, not meaning: macros are not expanded, included files not looked into. Whatever is no declaration becomes
an item of kind `unreadable`, and the reading goes on behind it. The time is proportional to the number of tokens.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from dice.kernels.source.declaration import (
    EXECUTION_SPACES,
    MEMORY_SPACES,
    SPECIFIERS_WITH_ARGUMENTS,
    Function,
    bare_function,
    parse_function,
)
from dice.kernels.source.items import Item, ItemKind
from dice.kernels.source.lexer import CLOSERS, CONDITIONAL, OPENERS, SplitRefused, Token, words
from dice.kernels.source.macros import DEFINE

_INCLUDE = re.compile(r"#\s*include\s*[<\"]([^>\"]+)[>\"]")
_CLASS_KEYS = words("struct class union enum")
_WITH_ARGUMENTS = SPECIFIERS_WITH_ARGUMENTS | words("static_assert decltype asm __asm__ explicit requires")
_AFTER_PARAMETERS = words("const volatile noexcept override final throw requires try")
_ACCESS = words("public private protected")
_BEFORE_LAMBDA = words("return co_return co_yield case")
_IN_LAMBDA_HEAD = words("-> :: < > * & ,")
_NAMESPACES = 100
"""Deeper ones are not read: names of items would take space without bounds."""


class _Extent(NamedTuple):
    """Index of a declaration's last token, of the `{` of its body or members (None: it has none), and what it is.

    kind: `type` for a class or enum with members, `call` for a macro call without `;`.
    """

    last: int
    brace: int | None
    kind: Literal["function", "type", "call", "other", "unreadable"]


class Reader:
    """`items`: at namespace scope, in order. `functions`: definitions and lambdas, in order of their bodies.

    refusal: the first thing that keeps the reading from being certain, or None.
    """

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.items: list[Item] = []
        self.functions: list[Function] = []
        self.refusal: str | None = None
        self._text, self._tokens = text, tokens
        self._lines = [match.start() for match in re.finditer("\n", text)]
        self._unpaired = [
            i
            for i, token in enumerate(tokens)
            if token.kind == "punctuator" and not token.reach and (token.text in OPENERS or token.text in CLOSERS)
        ]
        self._conditionals = [
            i for i, token in enumerate(tokens) if token.kind == "directive" and CONDITIONAL.match(token.text)
        ]
        self._scopes: list[str | None] = []  # None: a linkage block
        self._namespaces: tuple[str, ...] = ()
        self._classes: list[tuple[int, int]] = []  # members to be read: indices of the first, and behind the last
        self._in_classes = False
        self._read_namespace_scope()
        self._in_classes = True
        while self._classes:
            self._read_members(*self._classes.pop())
        self.functions.sort(key=lambda function: function.brace)

    def is_paired(self, first: int, last: int) -> bool:
        """Whether each bracket among tokens[first : last + 1] has its partner."""
        place = bisect_left(self._unpaired, first)
        return place == len(self._unpaired) or self._unpaired[place] > last

    def _line(self, token: Token) -> int:
        return bisect_left(self._lines, token.start) + 1

    def _refuse(self, reason: str) -> None:
        if self.refusal is None and not self._in_classes:
            self.refusal = reason

    # ---- namespace scope

    def _read_namespace_scope(self) -> None:
        i = 0
        while i < len(self._tokens):
            if self._tokens[i].text == ";" and self._tokens[i].kind == "punctuator":
                i += 1
                continue
            i = self._next(i) + 1
        if self._scopes:
            self._refuse("a namespace is never closed")

    def _next(self, i: int) -> int:
        """Add the item at `i`; returns the index of its last token."""
        token = self._tokens[i]
        if token.kind == "directive":
            self._add(*self._directive(token), i, i)
            return i
        if token.text == "}":
            kind: ItemKind = "scope_close" if self._scopes else "unreadable"
            if self._scopes:
                self._scopes.pop()
                self._set_namespaces()
            else:
                self._refuse(f"an unmatched }} at line {self._line(token)}")
            self._add(kind, "", i, i)
            return i
        brace = self._scope_brace(i)
        if brace is not None:
            words_before = [t.text for t in self._tokens[i:brace]]
            name = "".join(words_before[words_before.index("namespace") + 1 :]) if "namespace" in words_before else None
            self._add("scope_open", name or "", i, brace)
            self._scopes.append(name)
            self._set_namespaces()
            return brace
        extent = self._extent(i, len(self._tokens))
        try:
            self._classify(i, extent)
        except SplitRefused as refused:
            self._refuse(refused.reason)
            self._add("unreadable", "", i, extent.last)
        return extent.last

    def _set_namespaces(self) -> None:
        if len(self._scopes) > _NAMESPACES:
            self._refuse(f"more than {_NAMESPACES} namespaces in each other")
        else:
            self._namespaces = tuple(scope for scope in self._scopes if scope is not None)

    def _add(self, kind: ItemKind, name: str, first: int, last: int, function: Function | None = None) -> None:
        start, end = self._tokens[first].start, self._tokens[last].end
        line = self._line(self._tokens[first])
        tokens = self._tokens[first : last + 1]
        self.items.append(Item(kind, name, self._text[start:end], start, end, line, self._namespaces, function, tokens))

    @staticmethod
    def _directive(token: Token) -> tuple[ItemKind, str]:
        if match := _INCLUDE.match(token.text):
            return "include", match.group(1)
        if match := DEFINE.match(token.text):
            return "macro", match.group(1)
        return "directive", ""

    def _scope_brace(self, i: int) -> int | None:
        """Index of the `{` of the namespace or linkage block that begins at `i`; None for anything else."""
        words_here = [t.text for t in self._tokens[i : i + 3]]
        if words_here == ["extern", '"C"', "{"]:
            return i + 2
        i += words_here[:2] == ["inline", "namespace"]
        if self._tokens[i].text != "namespace":
            return None
        while i < len(self._tokens) and self._tokens[i].text not in ("{", ";", "="):
            i += 1
        return i if i < len(self._tokens) and self._tokens[i].text == "{" else None

    # ---- one declaration

    def _extent(self, first: int, end: int) -> _Extent:
        """How far the declaration at `first` goes, at most to before `end`."""
        tokens = self._tokens
        parameters = assigned = class_key = initialisers = False
        members: int | None = None
        previous = ""
        i = first
        while i < end:
            token = tokens[i]
            closing = i + token.reach
            if token.kind == "directive":
                self._refuse(f"a preprocessor line inside a declaration at line {self._line(token)}")
                i += 1
                continue
            if token.kind == "punctuator" and token.text in OPENERS:
                if closing <= i:
                    self._refuse("a bracket is never closed")
                    return _Extent(i, None, "unreadable")
                if not self._in_classes:
                    self._check_conditionals(i, closing)
            if token.text == ";" and token.kind == "punctuator":
                return _Extent(i, members, "other" if members is None else "type")
            if members is not None:
                i = max(i, closing) if token.text in OPENERS else i
            elif token.text == "<" and self._opens_list(i, previous, assigned):
                if closing <= i:
                    self._refuse("a template list is never closed")
                i = max(i, closing)
            elif token.text in ("(", "["):
                i = closing
                parameters = parameters or (token.text == "(" and previous not in _WITH_ARGUMENTS)
                if token.text == "(" and self._is_bare_call(first, i):
                    return _Extent(i, None, "call")
            elif token.text == "=" and previous != "operator":
                assigned = True
            elif token.text in _CLASS_KEYS and not parameters and not assigned:
                class_key = True
            elif token.text == "{" and token.kind == "punctuator":
                if i == first:
                    self._refuse(f"a block outside of any function at line {self._line(token)}")
                    return _Extent(closing, None, "unreadable")
                member = initialisers and (tokens[i - 1].kind == "identifier" or previous == ">")  # x{1}
                if class_key and not assigned and not parameters:
                    members = i
                elif parameters and not assigned and not member:
                    return _Extent(closing, i, "function")
                i = closing
            elif token.text == "}":
                break
            elif token.text == ":" and parameters:
                initialisers = True
            previous = tokens[i].text
            i += 1
        self._refuse(f"a declaration without an end at line {self._line(tokens[first])}")
        return _Extent(max(first, min(i, end) - 1), members, "unreadable")

    def _opens_list(self, i: int, previous: str, assigned: bool) -> bool:
        named = self._tokens[i - 1].kind == "identifier" and previous != "operator"
        return previous == "template" or (named and not assigned)

    def _check_conditionals(self, first: int, last: int) -> None:
        """Refuse blocks whose brackets match only when both branches of an #if are taken together."""
        place = bisect_left(self._conditionals, first)
        if place == len(self._conditionals) or self._conditionals[place] > last:
            return
        depth = 0
        levels: list[int] = []
        for token in self._tokens[first : last + 1]:
            if token.kind == "punctuator":
                depth += (token.text in OPENERS) - (token.text in CLOSERS)
            elif token.kind == "directive" and (match := CONDITIONAL.match(token.text)):
                if match.group(1).startswith("if"):
                    levels.append(depth)
                elif not levels or levels[-1] != depth:
                    self._refuse("brackets that depend on an #if")
                    return
                elif match.group(1) == "endif":
                    levels.pop()
        if levels:
            self._refuse("an #if that is not closed in its block")

    def _is_bare_call(self, first: int, closing: int) -> bool:
        """NAME(...) followed by the start of another declaration: a macro call that needs no semicolon."""
        tokens = self._tokens
        if tokens[first].kind != "identifier" or tokens[first + 1].text != "(" or tokens[first].text in _WITH_ARGUMENTS:
            return False
        if closing + 1 >= len(tokens):
            return True
        following = tokens[closing + 1]
        if self._in_classes and following.text in _AFTER_PARAMETERS:
            return False
        return following.kind in ("identifier", "directive")

    # ---- what a declaration is

    def _classify(self, first: int, extent: _Extent) -> None:
        last = extent.last
        tokens = self._tokens[first : last + 1]
        texts = [t.text for t in tokens]
        if not self.is_paired(first, last) and extent.kind != "unreadable":
            self._refuse("brackets do not match")
        if extent.kind != "function":
            self._read_code(first, last)
        if extent.kind == "unreadable":
            self._add("unreadable", "", first, last)
        elif extent.kind == "call":
            self._add("macro_call", texts[0], first, last)
        elif texts[0] == "using" and "=" in texts:
            self._add("type", texts[1], first, last)
        elif texts[0] in ("using", "namespace", "static_assert", "asm", "__asm__"):
            self._add("using", texts[-2] if len(texts) > 1 else "", first, last)
        elif (texts[0] == "template" and texts[1:2] != ["<"]) or texts[:2] == ["extern", "template"]:
            self._add("instantiation", "", first, last)
        elif texts[0] == "typedef" or extent.kind == "type" or _is_alias(tokens):
            if MEMORY_SPACES & set(texts[: texts.index("{") if "{" in texts else len(texts)]):
                raise SplitRefused("a device variable of a type defined in place")
            self._add("type", _type_name(tokens), first, last)
        else:
            self._function_or_variable(first, extent, tokens)

    def _function_or_variable(self, first: int, extent: _Extent, tokens: Sequence[Token]) -> None:
        function, error = None, None
        if extent.kind == "function" or not _is_variable(tokens):
            function, error = self._function(first, extent)
        if function is not None:
            kind = _function_kind(function)
            self._add(kind, function.name, first, extent.last, None if kind == "macro_call" else function)
        elif error is not None:
            raise error
        elif extent.kind == "function":
            raise SplitRefused(f"an unusual function at line {self._line(tokens[0])}")
        else:
            self._add(_variable_kind(tokens), _variable_name(tokens), first, extent.last)

    def _function(self, first: int, extent: _Extent) -> tuple[Function | None, SplitRefused | None]:
        """The function there, and why there is none; a definition is kept, and its body looked into."""
        last, brace = extent.last, -1
        if extent.kind == "function":
            assert extent.brace is not None
            brace = extent.brace
            self._read_code(brace, last)
        elif self._tokens[last].text == ";":
            last -= 1
        function, error = None, None
        try:
            function = parse_function(self._text, self._tokens, first, last, brace)
        except SplitRefused as refused:
            error = refused
        if brace >= 0:
            if function is None:
                head = self._tokens[first:brace]
                name = next((a.text for a, b in pairwise(head) if a.kind == "identifier" and b.text == "("), "")
                self.functions.append(bare_function(self._text, self._tokens, first, brace, last, head, name))
            else:
                self.functions.append(function)
        return function, error

    # ---- classes and code

    def _read_members(self, first: int, end: int) -> None:
        """Functions among the members of a class."""
        i = first
        while i < end:
            token = self._tokens[i]
            following = self._tokens[i + 1].text if i + 1 < end else ""
            if token.kind == "directive" or token.text == ";":
                i += 1
            elif token.text in _ACCESS and following == ":":
                i += 2
            else:
                extent = self._extent(i, end)
                if extent.kind == "function":
                    self._function(i, extent)
                else:
                    self._read_code(i, extent.last)
                i = extent.last + 1

    def _read_code(self, first: int, last: int) -> None:
        """Lambdas and classes among tokens[first : last + 1]."""
        i = first
        while i <= last:
            token = self._tokens[i]
            if token.text in _CLASS_KEYS and "enum" not in (token.text, self._tokens[i - 1].text):
                brace = self._members_of(i, last)
                if brace is not None:
                    end = brace + self._tokens[brace].reach
                    self._classes.append((brace + 1, end))
                    i = end
            elif token.text == "[" and token.reach > 0 and self._begins_lambda(i):
                brace = self._lambda_brace(i, last)
                if brace is not None:
                    behind = self._tokens[i + token.reach + 1 : brace]
                    end = brace + self._tokens[brace].reach
                    self.functions.append(bare_function(self._text, self._tokens, i, brace, end, behind))
            i += 1

    def _members_of(self, i: int, last: int) -> int | None:
        """Index of the `{` of the class whose key is tokens[i]; None when it is only named."""
        i += 1
        while i <= last:
            token = self._tokens[i]
            if token.text == "{":
                return i if token.reach > 0 else None
            if token.text in ("(", "<", "["):
                if token.reach <= 0:
                    return None
                i += token.reach
            elif token.text in _CLASS_KEYS or (
                token.kind != "identifier" and token.text not in ("::", ":", ",", "...")
            ):
                return None
            i += 1
        return None

    def _begins_lambda(self, i: int) -> bool:
        """Whether the `[` at tokens[i] opens a capture list, rather than an index or an attribute."""
        before = self._tokens[i - 1] if i else None
        if before is not None and (
            before.kind in ("number", "string")
            or before.text in (")", "]", ">")
            or (before.kind == "identifier" and before.text not in _BEFORE_LAMBDA)
        ):
            return False
        return self._tokens[i + 1].text != "["

    def _lambda_brace(self, i: int, last: int) -> int | None:
        i += self._tokens[i].reach + 1
        while i <= last:
            token = self._tokens[i]
            if token.text == "{":
                return i if token.reach > 0 else None
            if token.text == "(" and token.reach > 0:
                i += token.reach
            elif token.kind != "identifier" and token.text not in _IN_LAMBDA_HEAD:
                return None
            i += 1
        return None


def _function_kind(function: Function) -> ItemKind:
    spaces = set(function.specifiers) & EXECUTION_SPACES
    defined = function.brace >= 0
    if "__global__" in spaces:
        return "kernel" if defined else "kernel_declaration"
    if spaces == {"__device__"}:
        return "device_function"
    if "__device__" in spaces or (defined and "constexpr" in function.specifiers and not spaces):
        return "host_device_function"
    if not function.return_type and not spaces and "::" not in function.declarator:
        return "macro_call"
    return "host_function" if defined else "host_declaration"


def _variable_kind(tokens: Sequence[Token]) -> ItemKind:
    texts = [t.text for t in tokens]
    declared = texts[: texts.index("=")] if "=" in texts else texts
    if MEMORY_SPACES & set(declared):
        return "device_variable"
    return "constant" if {"const", "constexpr"} & set(declared) and "*" not in declared else "host_variable"


def _behind_templates(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens behind all `template <...>` at their beginning."""
    i = 0
    while i + 1 < len(tokens) and tokens[i].text == "template" and tokens[i + 1].reach > 0:
        i += 2 + tokens[i + 1].reach
    return tokens[i:]


def _is_alias(tokens: Sequence[Token]) -> bool:
    """`template <..> using X = ..`, `template <..> concept ..`, and forward declarations of classes."""
    texts = [t.text for t in _behind_templates(tokens)]
    if texts[:1] in (["using"], ["concept"]):
        return True
    return (
        texts[:1] != []
        and texts[0] in _CLASS_KEYS
        and len([t for t in texts if t != "class"]) <= 4
        and "(" not in texts
    )


def _type_name(tokens: Sequence[Token]) -> str:
    rest = _behind_templates(tokens)
    if rest[0].text == "typedef":
        return [t.text for t in rest if t.kind == "identifier"][-1]
    key = next((i for i, token in enumerate(rest) if token.text in _CLASS_KEYS | {"using", "concept"}), len(rest))
    named = next((t for t in _without_attributes(rest[key + 1 :]) if t.text not in ("class", "struct")), None)
    return named.text if named is not None and named.kind == "identifier" else ""


def _without_attributes(tokens: Sequence[Token]) -> Iterator[Token]:
    """Tokens but for `alignas(...)` and the like, and for the keys of a class, up to an `=`."""
    i = 0
    while i < len(tokens) and tokens[i].text != "=":
        if tokens[i].text in ("__align__", "alignas", "__attribute__"):
            i += tokens[i + 1].reach + 1 if i + 1 < len(tokens) and tokens[i + 1].text == "(" else 0
        else:
            yield tokens[i]
        i += 1


def _is_variable(tokens: Sequence[Token]) -> bool:
    return bool({t.text for t in tokens} & MEMORY_SPACES) and "(" not in {t.text for t in _without_attributes(tokens)}


def _variable_name(tokens: Sequence[Token]) -> str:
    """The (first) declared name: the last identifier before `=`, `[`, `{`, `,` or `;`."""
    name, depth, previous = "", 0, ""
    for token in _without_attributes(tokens):
        if token.text in ("<", ">") and token.reach:
            depth += 1 if token.text == "<" else -1
        elif not depth:
            if token.text in ("[", "{", ",", ";", ")") or (previous == "(" and token.text not in ("*", "&")):
                break
            name = token.text if token.kind == "identifier" else name
        previous = token.text
    return name
