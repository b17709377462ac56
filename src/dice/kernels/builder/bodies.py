"""PyTorch's headers without the bodies of their inline functions, which are compiled once into the support library.

Every unit that starts from a precompiled header instantiates each template that the header's inline functions use, whether
the unit calls them or not: 0.4 of the 0.5 CPU seconds of an empty unit. Without those bodies little waits.

    text = without_bodies(preprocessed, defined)      # `g++ -E -dD`: all headers in one text, macros kept

Taken out are bodies of non-template functions of PyTorch and of the standard library that stand in a class or are `inline`.
Whoever must see a body keeps it: `constexpr` (but for literals such as `"text"s`), deduced return types, `static` functions
of a namespace, templates and what stands in them, and arithmetic that kernels call (`c10::Half`, ...), which is to be inlined
there. The support library holds the same functions, because `-fkeep-inline-functions` emits every inline function that is no
template. Two namespaces that only such bodies use go as a whole. A unit that asks for one of them, or for a literal in a
constant expression, does not compile, and takes the untouched headers.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dice.kernels.builder.one_text import LINE_MARKER

NAMESPACES = frozenset(("at", "c10", "torch", "caffe2", "std", "__gnu_cxx"))
UNUSED = frozenset(("at::_ops", "at::symint"))
INITIALISER = "(initialiser)"
"""Name of what is taken out of a member's declaration."""
_EMPTY_AT_FIRST = frozenset(("unique_ptr", "shared_ptr", "optional", "intrusive_ptr"))
_ARITHMETIC = re.compile(r"Half|BFloat16|Float8|Float4|complex|floating_point|bit_cast|TensorAccessor")
"""In the name of a header whose functions kernels call."""
_KEPT = frozenset(("constexpr", "consteval", "always_inline", "__always_inline__", "friend", "requires", "try"))
_ACCESS = frozenset(("public", "private", "protected"))
_CLASSES = frozenset(("class", "struct", "union"))
_BEFORE_CONDITION = frozenset(("__attribute__", "__attribute", "deprecated", "alignas", "noexcept", "explicit"))
_TOKEN = re.compile(
    r"""
    (?P<directive>^[ \t]*\#(?:[^\\\n]|\\.)*)
  | (?P<raw>\b(?:u8|[uUL])?R"(?P<fence>[^()\\\s]*)\(.*?\)(?P=fence)")
  | (?P<literal>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+')
  | (?P<number>\b[0-9](?:'?[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<mark>::|[^\s])
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Body:
    """What is taken out: the body of a function, an initialiser, a namespace.

    name: with its scopes, as `at::Tensor::abs`. start, end: what goes. words: places of `inline` and `constexpr`, which go
    too. whole: nothing stays, as of a member that was declared in its class, or of a namespace.
    """

    name: str
    start: int
    end: int
    words: tuple[tuple[int, int], ...] = ()
    whole: bool = False


def without_bodies(text: str, defined: Container[str]) -> str:
    """The preprocessed `text` without bodies of inline functions. Lines and directives keep their places.

    defined: names of the functions that the support library has; others keep their bodies.
    """
    parts: list[str] = []
    position = 0
    for body in bodies(text):
        if body.name not in defined and body.name not in (*UNUSED, INITIALISER):
            continue
        for start, end in body.words:
            parts.append(text[position:start])
            position = end
        parts += text[position : body.start], "" if body.whole else ";", _lines(text[body.start : body.end])
        position = body.end
    return "".join((*parts, text[position:]))


def bodies(text: str) -> Iterator[Body]:
    """The bodies that `without_bodies` takes out where the support library has the functions, in their order."""
    return _Reader(text).read()


def function_name(readable: str) -> str:
    """A demangled symbol, `at::Tensor::abs[abi:cxx11](...) const`, without what stands in no `Body.name`."""
    return re.sub(r"\[abi:\w+\]|\s|\(.*", "", readable)


def _lines(text: str) -> str:
    """The ends of lines and the directives of what is taken out: macros defined in a body are defined behind it."""
    return "\n".join(line if line.lstrip().startswith("#") else "" for line in text.split("\n"))


@dataclass(frozen=True)
class _Scope:
    kind: Literal["namespace", "class", "linkage"]
    name: str = ""


class _Reader:
    """Reads declarations; what is between the braces of a function, a template or an initialiser is passed over."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _TOKEN.finditer(text)
        self.file = ""
        self.scopes: list[_Scope] = []
        self.head: list[re.Match[str]] = []
        """Tokens of the declaration that is being read."""
        self.depth = 0
        """Open parentheses in it."""

    def read(self) -> Iterator[Body]:
        for token in self.tokens:
            spelt = token.group()
            if token.lastgroup == "directive":
                self._note_file(spelt)
            elif self.depth == 0 and spelt == "{":
                body = self._brace(token)
                if body is not None:
                    yield body
            elif self.depth == 0 and spelt == "}":
                closed = self.scopes.pop() if self.scopes else None
                # a name may follow a class
                self.head = [token] if closed is not None and closed.kind == "class" else []
            elif self.depth == 0 and (spelt == ";" or (spelt == ":" and self._after_access())):
                initialiser = self._empty_pointer() if spelt == ";" else None
                self.head = []
                if initialiser is not None:
                    yield initialiser
            else:
                self.depth += (spelt == "(") - (spelt == ")")
                self.head.append(token)

    def _after_access(self) -> bool:
        return len(self.head) == 1 and self.head[0].group() in _ACCESS

    def _empty_pointer(self) -> Body | None:
        """The initialiser of a member such as `std::unique_ptr<A> a = nullptr`, which is empty without it, too: with it, GCC
        makes the class's members for every unit."""
        spelt = [token.group() for token in self.head]
        if not self.scopes or self.scopes[-1].kind != "class" or "=" not in spelt or "(" in spelt:
            return None
        equals = spelt.index("=")
        empty = spelt[equals + 1 :] in (["nullptr"], ["std", "::", "nullopt"])
        kind = spelt[spelt.index("<") - 1] if "<" in spelt[1:equals] else ""
        if not empty or kind not in _EMPTY_AT_FIRST:
            return None
        return Body(INITIALISER, self.head[equals].start(), self.head[-1].end(), whole=True)

    def _note_file(self, directive: str) -> None:
        if marker := LINE_MARKER.match(directive):
            path = Path(marker.group(1))
            self.file = "" if path.parent.name == "ops" else path.name

    def _brace(self, brace: re.Match[str]) -> Body | None:
        """At a `{` outside of parentheses: enter a scope, or pass over what it encloses."""
        words = _outside_parentheses(self.head)
        spelt = [word.group() for word in words]
        specialised = [token.group() for token in self.head[:3]] == ["template", "<", ">"]
        if specialised:
            spelt, words = spelt[1:], words[1:]
        scope = _scope(spelt)
        if scope is not None:
            name = "::".join((*(outer.name for outer in self.scopes if outer.kind != "linkage"), scope.name))
            if name in UNUSED:
                start, self.head = self.head[0].start(), []
                return Body(name, start, self._skip(), whole=True)
            hidden = any(token.group() == '"hidden"' for token in self.head)  # no library shows others what is in there
            self.scopes.append(_Scope(scope.kind) if hidden else scope)
            self.head = []
            return None
        head, file = self.head, self.file
        end = self._skip()
        if _goes_on(spelt):
            self.head.append(brace)
            return None
        self.head = []
        kept = _KEPT.intersection(token.group() for token in head)
        literal = '""' in spelt  # `"text"s`: whoever asks for it in a constant expression goes to the untouched headers
        if specialised or _ARITHMETIC.search(file) or (kept and not (literal and kept == {"constexpr"})):
            return None
        return self._body(words, spelt, brace, end)

    def _skip(self) -> int:
        """Pass over everything up to the partner of a brace; the offset behind it."""
        level = 1
        for token in self.tokens:
            spelt = token.group()
            if token.lastgroup == "directive":
                self._note_file(spelt)
            elif spelt in ("{", "}"):
                level += 1 if spelt == "{" else -1
                if level == 0:
                    return token.end()
        return len(self.text)

    def _body(self, words: list[re.Match[str]], spelt: list[str], brace: re.Match[str], end: int) -> Body | None:
        """The body of a function that has this head, if it may go."""
        names = [scope.name for scope in self.scopes if scope.kind != "linkage"]
        if not names or names[0].split("::")[0] not in NAMESPACES or "" in names:
            return None
        if "(" not in spelt or spelt[0] == "template" or "decltype" in spelt:
            return None
        parameters = spelt.index("(")
        if "auto" in spelt[:parameters] and "->" not in "".join(spelt[parameters:]):
            return None
        start = spelt.index("operator") if "operator" in spelt[:parameters] else parameters - 1
        if start > 0 and spelt[start - 1] == "~":
            start -= 1
        name = "".join(spelt[start:parameters])
        colon = _initialiser_list(spelt)
        first = brace.start() if colon is None else words[colon].start()
        if any(scope.kind == "class" for scope in self.scopes):
            return Body("::".join((*names, name)), first, end)
        if "inline" not in spelt[:parameters] or "static" in spelt[:parameters]:
            return None
        if start > 1 and spelt[start - 1] == "::" and spelt[start - 2].isidentifier():
            return Body("::".join((*names, spelt[start - 2], name)), words[0].start(), end, whole=True)
        dropped = tuple(word.span() for word in words if word.group() in ("inline", "constexpr"))
        return Body("::".join((*names, name)), first, end, words=dropped)


def _outside_parentheses(head: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """The tokens of a head that stand in no parentheses, these among them, without attributes, conditions of `noexcept` and
    `explicit`, and the parameters of templates."""
    words: list[re.Match[str]] = []
    depth, dropped, angles = 0, False, 0
    for token in head:
        spelt = token.group()
        if spelt == ")":
            depth -= 1
        if depth == 0 and not dropped:
            if angles or (spelt == "<" and words and words[-1].group() == "template"):
                angles += (spelt == "<") - (spelt == ">")
            else:
                words.append(token)
        if spelt == "(":
            if depth == 0 and len(words) > 1 and words[-2].group() in _BEFORE_CONDITION:
                dropped = True
                del words[-2:]
            depth += 1
        elif depth == 0:
            dropped = False
    return words


def _scope(spelt: Sequence[str]) -> _Scope | None:
    """The scope that a brace behind these words opens; None where it encloses something else."""
    if not spelt or spelt[0] == "template":
        return None
    if "namespace" in spelt:
        return _Scope("namespace", "".join(spelt[spelt.index("namespace") + 1 :]))
    if "(" in spelt or "=" in spelt or "enum" in spelt:
        return None
    if spelt[0] == "extern" and spelt[-1].startswith('"'):
        return _Scope("linkage")
    if _CLASSES.isdisjoint(spelt):
        return None
    before_bases = [word for word in (spelt[: spelt.index(":")] if ":" in spelt else spelt) if word != "final"]
    if "<" in before_bases:  # a specialisation
        return _Scope("class", "".join(before_bases[before_bases.index("<") - 1 :]))
    name = next((word for word in reversed(before_bases) if word.isidentifier()), "")
    return _Scope("class", "" if name in _CLASSES else name)


def _goes_on(spelt: Sequence[str]) -> bool:
    """Whether the declaration goes on behind the braces: those of an initialiser, an enumeration or a class template."""
    if not spelt:
        return False
    if "enum" in spelt or "(" not in spelt:
        return True
    if any(word == "=" and "operator" not in spelt[max(0, i - 3) : i] for i, word in enumerate(spelt)):
        return True
    return _initialiser_list(spelt) is not None and spelt[-1] not in (")", "{")


def _initialiser_list(spelt: Sequence[str]) -> int | None:
    """Place of the colon between a constructor's parameters and its initialisers."""
    return next((i for i, word in enumerate(spelt) if word == ":" and "(" in spelt[:i]), None)
