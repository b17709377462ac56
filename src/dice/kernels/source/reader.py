"""Reads tokens of CUDA C++ into items at namespace scope and into functions, wherever those stand.

It reads text, not meaning: macros are not expanded, included files not looked into. Whatever is no declaration becomes
an item of kind `unreadable`, and the reading goes on behind it. The time is proportional to the number of tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from dice.kernels.source.declaration import (
    MEMORY_SPACES,
    Function,
    bare_function,
    parse_function,
)
from dice.kernels.source.extent import Extent, Extents
from dice.kernels.source.items import (
    CLASS_KEYS,
    Item,
    ItemKind,
    declared_names,
    function_kind,
    is_alias,
    is_variable,
    type_name,
    variable_kind,
)
from dice.kernels.source.lexer import OPENERS, Lines, SplitRefused, Token, shallow, words
from dice.kernels.source.macros import DEFINE

_INCLUDE = re.compile(r"#\s*include\s*[<\"]([^>\"]+)[>\"]")
_ACCESS = words("public private protected")
_BEFORE_LAMBDA = words("return co_return co_yield case")
_IN_LAMBDA_HEAD = words("-> :: < > * & ,")
_NAMESPACES = 100
"""Deeper ones are not read: names of items would take space without bounds."""


class Reader:
    """`items`: at namespace scope, in order. `functions`: definitions and lambdas, in order of their bodies.

    refusal: the first thing that keeps the reading from being certain, or None.
    """

    def __init__(self, text: str, tokens: Sequence[Token], lines: Lines) -> None:
        self.items: list[Item] = []
        self.functions: list[Function] = []
        self._text, self._tokens = text, tokens
        self.extents = Extents(tokens, lines)
        self._scopes: list[str | None] = []  # None: a linkage block
        self._namespaces: tuple[str, ...] = ()
        self._classes: list[tuple[int, int]] = []  # members to be read: indices of the first, and behind the last
        self._read_namespace_scope()
        self.refusal = self.extents.refusal
        while self._classes:
            self._read_members(*self._classes.pop())
        self.functions.sort(key=lambda function: function.brace)

    # ---- namespace scope

    def _read_namespace_scope(self) -> None:
        i = 0
        while i < len(self._tokens):
            if self._tokens[i].text == ";":
                i += 1
                continue
            i = self._next(i) + 1
        if self._scopes:
            self.extents.refuse("a namespace is never closed")

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
                self.extents.refuse(f"an unmatched }} at line {self.extents.line(token)}")
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
        extent = self.extents.read(i, len(self._tokens))
        try:
            self._classify(i, extent)
        except SplitRefused as refused:
            self.extents.refuse(refused.reason)
            self._add("unreadable", "", i, extent.last)
        return extent.last

    def _set_namespaces(self) -> None:
        if len(self._scopes) > _NAMESPACES:
            self.extents.refuse(f"more than {_NAMESPACES} namespaces in each other")
        else:
            self._namespaces = tuple(scope for scope in self._scopes if scope is not None)

    def _add(self, kind: ItemKind, name: str, first: int, last: int, function: Function | None = None) -> None:
        start, end = self._tokens[first].start, self._tokens[last].end
        line = self.extents.line(self._tokens[first])
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
        i += 1
        while i < len(self._tokens):
            token = self._tokens[i]
            called = token.text == "(" and self._tokens[i - 1].text == "namespace"
            if token.text == "{":
                return i
            if token.text in (";", "=", "}") or called or (token.text in OPENERS and token.reach <= 0):
                return None  # never further than the declaration goes, so that no token is seen again and again
            i += (token.reach if token.text in OPENERS else 0) + 1
        return None

    # ---- what a declaration is

    def _classify(self, first: int, extent: Extent) -> None:
        last = extent.last
        tokens = self._tokens[first : last + 1]
        texts = [t.text for t in tokens]
        if not self.extents.is_paired(first, last) and extent.kind != "unreadable":
            self.extents.refuse("brackets do not match")
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
        elif texts[0] == "typedef" or extent.kind == "type" or is_alias(tokens):
            if MEMORY_SPACES & set(texts[: texts.index("{") if "{" in texts else len(texts)]):
                raise SplitRefused("a device variable of a type defined in place")
            self._add("type", type_name(tokens), first, last)
        else:
            self._function_or_variable(first, extent, tokens)

    def _function_or_variable(self, first: int, extent: Extent, tokens: Sequence[Token]) -> None:
        function, error = None, None
        if extent.kind == "function" or not is_variable(tokens):
            function, error = self._function(first, extent)
        if function is not None:
            kind = function_kind(function)
            self._add(kind, function.name, first, extent.last, None if kind == "macro_call" else function)
        elif error is not None:
            raise error
        elif extent.kind == "function":
            raise SplitRefused(f"an unusual function at line {self.extents.line(tokens[0])}")
        else:
            names = declared_names(tokens)
            self._add(variable_kind(tokens), names[0].text if names else "", first, extent.last)

    def _function(self, first: int, extent: Extent) -> tuple[Function | None, SplitRefused | None]:
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
                self.functions.append(bare_function(self._text, self._tokens, first, last, brace, head, name))
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
                extent = self.extents.read(i, end, in_class=True)
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
            if token.text in CLASS_KEYS:
                brace = self._members_of(i, last)
                if brace is not None:
                    end = brace + self._tokens[brace].reach
                    self._classes.append((brace + 1, end))
                    i = end
            elif token.text == "[" and token.reach > 0 and self._begins_lambda(i):
                brace = self._lambda_brace(i, last)
                if brace is not None:
                    head = [self._tokens[j] for j in shallow(self._tokens, i + token.reach + 1, brace)]
                    end = brace + self._tokens[brace].reach
                    self.functions.append(bare_function(self._text, self._tokens, i, end, brace, head))
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
            elif token.text in CLASS_KEYS or (token.kind != "identifier" and token.text not in ("::", ":", ",", "...")):
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
