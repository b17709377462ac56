"""One function of CUDA C++, taken apart: template head, specifiers, return type, name, parameters, body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dice.kernels.source.lexer import (
    SplitRefused,
    Token,
    at_commas,
    matching,
    partner,
    shallow,
    source_of,
    words,
)

EXECUTION_SPACES = words("__global__ __device__ __host__")
MEMORY_SPACES = words("__constant__ __device__ __shared__ __managed__")
_SPECIFIERS = EXECUTION_SPACES | words(
    "static inline extern constexpr consteval constinit virtual explicit friend "
    "__forceinline__ __noinline__ __inline__ __inline __inline_hint__"
)
SPECIFIERS_WITH_ARGUMENTS = words(
    "__launch_bounds__ __cluster_dims__ __block_size__ __maxnreg__ __attribute__ __attribute __align__ __declspec "
    "__declspec__ alignas C10_LAUNCH_BOUNDS_1 C10_LAUNCH_BOUNDS_2"
)
_TYPE_WORDS = words(
    "auto void bool char short int long float double signed unsigned wchar_t char8_t char16_t char32_t __int64 __int128"
)
_TYPE_QUALIFIERS = words(
    "const volatile __restrict__ __restrict restrict register typename struct class union enum __grid_constant__"
)


@dataclass(frozen=True)
class Parameter:
    """`type` is a type-id without the name (`const float*`, `float (&)[4]`); `name` is None when it has none.

    `type` is empty for C's `...`. `end`: the offset in the source behind all but the default.
    """

    text: str
    type: str
    name: str | None
    default: str | None
    end: int

    @property
    def is_pack(self) -> bool:
        """Whether it is a function parameter pack."""
        return "..." in self.type

    @property
    def without_default(self) -> str:
        """`text` up to its default."""
        return self.text if self.default is None else self.text.removesuffix(f" = {self.default}")


@dataclass(frozen=True)
class TemplateParameter:
    """`name` is None when it has none."""

    name: str | None
    is_pack: bool


@dataclass(frozen=True)
class Function:
    """A function, declared or defined, or a lambda expression.

    name: without qualification and template arguments; "" of a lambda.
    declarator: name with its template arguments or class (`k<float>` for a specialisation, `Foo::bar`); "" of a lambda,
        and where the head cannot be taken apart.
    template_head: `template <typename T, int N>` verbatim, "" without one; several heads are joined.
    specifiers: `__global__`, `static`, `inline` and the like, in order, without arguments.
    attributes: `__launch_bounds__(256)`, `__attribute__((...))` and the like, verbatim, in order.
    launch_bounds: the text between the parentheses of `__launch_bounds__`, or None.
    suffix: what stands between the parameters and the body (`noexcept`, `-> int`, constructor initialisers).
    first, brace, last: indices, into the source's tokens, of its first one, of the `{` and of the `}` of its body; both
        -1 for a declaration. start, head_end, body_start, end: the same places, and where the head ends, in the text.
    """

    text: str = field(repr=False)
    first: int
    brace: int
    last: int
    start: int
    head_end: int
    body_start: int
    end: int
    name: str = ""
    declarator: str = ""
    template_head: str = ""
    template_parameters: tuple[TemplateParameter, ...] = ()
    is_specialisation: bool = False
    specifiers: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    launch_bounds: str | None = None
    linkage_c: bool = False
    return_type: str = ""
    parameters: tuple[Parameter, ...] = ()
    suffix: str = ""

    @property
    def head(self) -> str:
        """Everything before the body, verbatim."""
        return self.text[self.start : self.head_end]

    @property
    def is_defined(self) -> bool:
        """Whether it has a body."""
        return self.brace >= 0

    @property
    def is_template(self) -> bool:
        """Whether it has template parameters of its own (a full specialisation has none)."""
        return bool(self.template_parameters)

    def declaration(self, *, keep: frozenset[str] = frozenset({"inline", "static", "constexpr"})) -> str:
        """A prototype with plain C++ specifiers only (those of `keep`), default arguments included, ending in `;`."""
        linkage = 'extern "C" ' if self.linkage_c else ""
        specifiers = "".join(f"{word} " for word in self.specifiers if word in keep)
        parameters = ", ".join(parameter.text for parameter in self.parameters)
        suffix = f" {self.suffix}" if self.suffix and not self.suffix.startswith(":") else ""
        head = f"{self.template_head} " if self.template_head else ""
        return f"{head}{linkage}{specifiers}{self.return_type} {self.declarator}({parameters}){suffix};"


def parse_parameter(text: str, tokens: Sequence[Token]) -> Parameter:
    """One parameter of a function, from its tokens. Raises SplitRefused."""
    left, default = _without_default(text, tokens)
    if not left:
        raise SplitRefused("a parameter without a type")
    whole = source_of(text, left) + (f" = {default}" if default else "")
    name = _parameter_name(left)
    if name is None:
        return Parameter(whole, source_of(text, left), None, default, left[-1].end)
    before = text[left[0].start : name.start].rstrip()
    after = text[name.end : left[-1].end].strip()
    return Parameter(whole, f"{before} {after}".strip(), name.text, default, left[-1].end)


def _without_default(text: str, tokens: Sequence[Token]) -> tuple[Sequence[Token], str | None]:
    """The tokens before a parameter's `=`, and the text behind it, or None without one."""
    equals = next((i for i in shallow(tokens) if tokens[i].text == "="), None)
    return (tokens, None) if equals is None else (tokens[:equals], source_of(text, tokens[equals + 1 :]))


def _parameter_name(tokens: Sequence[Token]) -> Token | None:
    i = 0
    typed = False
    found: Token | None = None
    previous = ""
    while i < len(tokens):
        token = tokens[i]
        if token.text == "[":
            break
        if token.text == "<" and previous and found is None and typed:
            i = matching(tokens, i)
        elif token.text == "(":  # decltype(x), __attribute__((..)), alignas(..)
            end = matching(tokens, i)
            if tokens[i + 1].text in ("*", "&", "&&"):  # void (*f)(int), float (&x)[4]
                return _innermost_name(tokens[i + 1 : end])
            i = end
            typed = typed or previous == "decltype"
        elif token.kind == "identifier" and token.text not in _TYPE_QUALIFIERS | SPECIFIERS_WITH_ARGUMENTS:
            if token.text in _TYPE_WORDS or token.text == "decltype" or previous == "::" or not typed:
                typed, found = True, None
            else:
                found = token
        elif token.text == "::":
            found = None
        previous = token.text
        i += 1
    return found


def _innermost_name(tokens: Sequence[Token]) -> Token | None:
    """The name in `*f`, `&x` or `*(*f)(int)`."""
    for token in tokens:
        if token.kind == "identifier" and token.text not in _TYPE_QUALIFIERS:
            return token
        if token.text in (")", "["):
            break
    return None


def parse_template_head(text: str, tokens: Sequence[Token]) -> tuple[TemplateParameter, ...]:
    """Parameters between the angle brackets of `template <...>`; `tokens` excludes the brackets. Raises SplitRefused."""
    parameters = []
    for group in at_commas(tokens):
        left, _ = _without_default(text, group)
        if not left:
            raise SplitRefused("a template parameter without a kind")
        if left[0].text in ("typename", "class"):
            names = [t.text for t in left[1:] if t.kind == "identifier"]
            name = names[-1] if names else None
        elif left[0].text == "template":
            name = left[-1].text if left[-1].kind == "identifier" else None
        else:
            name = parse_parameter(text, left).name
        parameters.append(TemplateParameter(name, is_pack=any(t.text == "..." for t in left)))
    return tuple(parameters)


def parse_function(text: str, tokens: Sequence[Token], first: int, last: int, brace: int = -1) -> Function | None:
    """The function in tokens[first : last + 1], whose body begins at `brace` (-1: it has none; no `;` then).

    Returns None when the tokens do not look like a function: no parameter list after a name. Raises SplitRefused.
    """
    head = tokens[first : last + 1 if brace < 0 else brace]
    read = _Head(text, head)
    if read.parameters is None or (name_at := _name_start(read.core)) is None:
        return None
    end = matching(head, read.parameters)
    inside = head[read.parameters + 1 : end]
    groups = [] if [t.text for t in inside] == ["void"] else at_commas(inside)
    return Function(
        **_place(text, tokens, first, last, brace),
        name=_plain_name(read.core[name_at:]),
        declarator=source_of(text, read.core[name_at:]),
        template_head=" ".join(read.template_heads),
        template_parameters=tuple(read.template_parameters),
        is_specialisation=read.is_specialisation,
        specifiers=tuple(read.specifiers),
        attributes=tuple(read.attributes),
        launch_bounds=read.launch_bounds,
        linkage_c=read.linkage_c,
        return_type=" ".join(token.text for token in read.core[:name_at]),
        parameters=tuple(parse_parameter(text, group) for group in groups),
        suffix=source_of(text, head[end + 1 :]),
    )


def bare_function(
    text: str, tokens: Sequence[Token], first: int, last: int, brace: int, head: Sequence[Token], name: str = ""
) -> Function:
    """A lambda, or a function whose head cannot be taken apart: its place, and the execution spaces named in `head`."""
    spaces = tuple(token.text for token in head if token.text in EXECUTION_SPACES)
    return Function(**_place(text, tokens, first, last, brace), name=name, specifiers=spaces)


def _place(text: str, tokens: Sequence[Token], first: int, last: int, brace: int) -> dict[str, Any]:
    defined = brace >= 0
    return {
        "text": text,
        "first": first,
        "brace": brace,
        "last": last if defined else -1,
        "start": tokens[first].start,
        "head_end": tokens[brace - 1 if defined else last].end,
        "body_start": tokens[brace].start if defined else -1,
        "end": tokens[last].end,
    }


class _Head:
    """What stands before a function's parameters. `core`: return type and name; `parameters`: index of their `(`."""

    def __init__(self, text: str, head: Sequence[Token]) -> None:
        self.template_heads: list[str] = []
        self.template_parameters: list[TemplateParameter] = []
        self.is_specialisation = self.linkage_c = False
        self.specifiers: list[str] = []
        self.attributes: list[str] = []
        self.launch_bounds: str | None = None
        self.core: list[Token] = []
        self.parameters: int | None = None
        self._text, self._head = text, head
        begin = self._read_templates()
        if begin is not None:
            self._read_core(begin)

    def _read_templates(self) -> int | None:
        """Index behind the last `template <...>`; None when one is not of this form."""
        head, i = self._head, 0
        while i < len(head) and head[i].text == "template":
            if i + 1 >= len(head) or head[i + 1].text != "<":
                return None
            end = matching(head, i + 1)
            self.template_parameters += parse_template_head(self._text, head[i + 2 : end])
            self.is_specialisation = self.is_specialisation or end == i + 2
            end = _constraint_end(head, end + 1)
            self.template_heads.append(source_of(self._text, head[i:end]))
            i = end
        return i

    def _read_core(self, i: int) -> None:
        head, core, is_operator = self._head, self.core, False
        while i < len(head):
            token = head[i]
            following = head[i + 1].text if i + 1 < len(head) else ""
            before = core[-1] if core else None
            end = i
            if token.text in _SPECIFIERS:
                if token.text == "extern" and following.startswith('"'):
                    self.linkage_c = following == '"C"'
                    end = i + 1
                else:
                    self.specifiers.append(token.text)
            elif token.text in SPECIFIERS_WITH_ARGUMENTS and following == "(":
                end = matching(head, i + 1)
                self.attributes.append(source_of(self._text, head[i : end + 1]))
                if "launch_bounds" in token.text.lower():  # PyTorch's macros, too
                    self.launch_bounds = source_of(self._text, head[i + 2 : end])
            elif token.text == "[" and following == "[":
                end = matching(head, i)
            else:
                if token.text == "decltype" and following == "(":
                    end = matching(head, i + 1)
                elif (
                    token.text == "<"
                    and before is not None
                    and before.kind == "identifier"
                    and before.text != "operator"
                ):
                    end = matching(head, i)
                elif token.text == "(" and before is not None and before.text == "operator":
                    end = i + 1  # operator()
                elif token.text == "(":
                    self.parameters = i
                    return
                elif token.text in ("=", "{", "[") and not is_operator:
                    return
                is_operator = is_operator or token.text == "operator"
                core.extend(head[i : end + 1])
            i = end + 1


def _constraint_end(head: Sequence[Token], i: int) -> int:
    """Index behind the requires-clause at head[i]; `i` where none stands there."""
    texts = [*(token.text for token in head), "", "", ""]
    if texts[i] != "requires":
        return i
    while texts[i] in ("requires", "&&", "||"):
        i += 1 + (texts[i + 1] == "!")
        while texts[i + 1] == "::":
            i += 2
        if i >= len(head):
            return len(head)
        i = (partner(head, i) or i) + 1  # a name, or an expression in parentheses
        i = (partner(head, i) or i) + 1 if texts[i] == "<" else i
    return i


def _name_start(core: Sequence[Token]) -> int | None:
    """Index in `core` (return type, then name) where the name begins, its qualification included."""
    operator = next((i for i, token in enumerate(core) if token.text == "operator"), None)
    i = len(core) - 1 if operator is None else operator
    if operator is None:
        i = _before_template_list(core, i)
    if i < 0 or core[i].kind != "identifier" or core[i].text in _TYPE_WORDS | _TYPE_QUALIFIERS:
        return None
    if i >= 1 and core[i - 1].text == "~":
        i -= 1
    while i >= 2 and core[i - 1].text == "::":
        owner = _before_template_list(core, i - 2)
        if owner < 0 or core[owner].kind != "identifier":
            break
        i = owner
    return i


def _before_template_list(core: Sequence[Token], i: int) -> int:
    """Index of the token before the template list that ends at core[i]; `i` where none does."""
    return i + core[i].reach - 1 if i >= 0 and core[i].text == ">" and core[i].reach < 0 else i


def _plain_name(tokens: Sequence[Token]) -> str:
    """The last name of a declarator, without qualification and template arguments."""
    texts = [token.text for token in tokens]
    if "operator" in texts:
        return "".join(texts[texts.index("operator") :])
    i = _before_template_list(tokens, len(tokens) - 1)
    return f"~{texts[i]}" if i and texts[i - 1] == "~" else texts[i]
