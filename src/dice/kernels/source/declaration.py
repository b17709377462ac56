"""One function head of CUDA C++, taken apart: template head, qualifiers, return type, name, parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dice.kernels.source.lexer import SplitRefused, Token, matching, matching_angle, source_of, split_commas

EXECUTION_SPACES = frozenset({"__global__", "__device__", "__host__"})
MEMORY_SPACES = frozenset({"__constant__", "__device__", "__shared__", "__managed__"})
_SPECIFIERS = EXECUTION_SPACES | {
    "static",
    "inline",
    "extern",
    "constexpr",
    "consteval",
    "constinit",
    "virtual",
    "explicit",
    "friend",
    "__forceinline__",
    "__noinline__",
    "__inline__",
    "__inline",
    "__inline_hint__",
}
_SPECIFIERS_WITH_ARGUMENTS = frozenset(
    {
        "__launch_bounds__",
        "__cluster_dims__",
        "__block_size__",
        "__maxnreg__",
        "__attribute__",
        "__attribute",
        "__align__",
        "__declspec",
        "__declspec__",
        "alignas",
    }
)
_TYPE_WORDS = frozenset(
    [
        "auto",
        "void",
        "bool",
        "char",
        "short",
        "int",
        "long",
        "float",
        "double",
        "signed",
        "unsigned",
        "wchar_t",
        "char8_t",
        "char16_t",
        "char32_t",
        "__int64",
        "__int128",
    ]
)
_TYPE_QUALIFIERS = frozenset(
    [
        "const",
        "volatile",
        "__restrict__",
        "__restrict",
        "restrict",
        "register",
        "typename",
        "struct",
        "class",
        "union",
        "enum",
        "__grid_constant__",
    ]
)


@dataclass(frozen=True)
class Parameter:
    """`type` is a type-id without the name (`const float*`, `float (&)[4]`); `name` is None when it has none.

    `type` is empty for C's `...`.
    """

    text: str
    type: str
    name: str | None
    default: str | None

    @property
    def is_pack(self) -> bool:
        """Whether it is a function parameter pack."""
        return "..." in self.type


@dataclass(frozen=True)
class TemplateParameter:
    """`kind` is `type` (typename T), `template`, or the type-id of a value (`int`)."""

    text: str
    kind: str
    name: str | None
    default: str | None
    is_pack: bool


@dataclass(frozen=True)
class Function:
    """A function declaration or definition at namespace scope.

    template_head: `template <typename T, int N>` verbatim, "" without one; several heads are joined.
    specifiers: `__global__`, `static`, `inline` and the like, in order, without arguments.
    attributes: `__launch_bounds__(256)`, `__attribute__((...))` and the like, verbatim, in order.
    launch_bounds: the text between the parentheses of `__launch_bounds__`, or None.
    declarator: name with its template arguments or class (`k<float>` for a specialisation, `Foo::bar`).
    suffix: what stands between the parameters and the body (`noexcept`, `-> int`, constructor initialisers).
    body: the braces and all between, verbatim; None for a declaration.
    head: everything before the body, verbatim.
    """

    name: str
    declarator: str
    template_head: str
    template_parameters: tuple[TemplateParameter, ...]
    is_specialisation: bool
    specifiers: tuple[str, ...]
    attributes: tuple[str, ...]
    launch_bounds: str | None
    linkage_c: bool
    return_type: str
    parameters: tuple[Parameter, ...]
    suffix: str
    head: str
    body: str | None
    body_start: int

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
    """One parameter of a function, from its tokens."""
    equals = next((i for i, token in enumerate(_shallow(tokens)) if token.text == "="), None)
    default = None
    if equals is not None:
        position = _shallow(tokens)[equals].start
        default = source_of(text, [t for t in tokens if t.start > position])
        tokens = [t for t in tokens if t.start < position]
    if not tokens:
        raise SplitRefused("a parameter without a type")
    whole = source_of(text, tokens) + (f" = {default}" if default else "")
    name_token = _parameter_name(tokens)
    if name_token is None:
        return Parameter(whole, source_of(text, tokens), None, default)
    before = text[tokens[0].start : name_token.start].rstrip()
    after = text[name_token.end : tokens[-1].end].strip()
    return Parameter(whole, f"{before} {after}".strip(), name_token.text, default)


def _shallow(tokens: Sequence[Token]) -> list[Token]:
    """Tokens outside brackets and template lists (those brackets themselves left out)."""
    shallow: list[Token] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "punctuator" and token.text in "([{":
            i = matching(tokens, i)
        elif token.text == "<" and i > 0 and tokens[i - 1].kind == "identifier":
            i = matching_angle(tokens, i)
        else:
            shallow.append(token)
        i += 1
    return shallow


def _parameter_name(tokens: Sequence[Token]) -> Token | None:
    for i, token in enumerate(tokens):  # void (*f)(int), float (&x)[4]
        if token.text == "(" and i + 1 < len(tokens) and tokens[i + 1].text in ("*", "&"):
            inner = tokens[i + 1 : matching(tokens, i)]
            named = [t for t in inner if t.kind == "identifier" and t.text not in _TYPE_QUALIFIERS]
            return named[-1] if named else None
    i = 0
    typed = False
    candidate: Token | None = None
    previous = ""
    while i < len(tokens):
        token = tokens[i]
        if token.text == "[":
            break
        if token.text == "<" and previous and candidate is None and typed:
            i = matching_angle(tokens, i)
        elif token.text == "(":  # decltype(x), __attribute__((..)), alignas(..)
            i = matching(tokens, i)
            typed = typed or previous == "decltype"
        elif token.kind == "identifier" and token.text not in _TYPE_QUALIFIERS | _SPECIFIERS_WITH_ARGUMENTS:
            if token.text in _TYPE_WORDS or token.text == "decltype" or previous == "::" or not typed:
                typed, candidate = True, None
            else:
                candidate = token
        elif token.text == "::":
            candidate = None
        previous = token.text
        i += 1
    return candidate


def parse_template_head(text: str, tokens: Sequence[Token]) -> tuple[TemplateParameter, ...]:
    """Parameters between the angle brackets of `template <...>`; `tokens` excludes the brackets."""
    parameters = []
    for group in split_commas(tokens):
        shallow = _shallow(group)
        equals = next((t.start for t in shallow if t.text == "="), None)
        left = [t for t in group if equals is None or t.start < equals]
        default = None if equals is None else source_of(text, [t for t in group if t.start > equals])
        is_pack = any(t.text == "..." for t in left)
        if left[0].text in ("typename", "class"):
            names = [t.text for t in left[1:] if t.kind == "identifier"]
            kind, name = "type", names[-1] if names else None
        elif left[0].text == "template":
            kind, name = "template", left[-1].text if left[-1].kind == "identifier" else None
        else:
            parameter = parse_parameter(text, left)
            kind, name = parameter.type, parameter.name
        parameters.append(TemplateParameter(source_of(text, group), kind, name, default, is_pack))
    return tuple(parameters)


def parse_function(text: str, tokens: Sequence[Token], body: int | None) -> Function | None:
    """The function whose head is tokens[:body]; with `body=None`, all of `tokens` (without the final `;`).

    Returns None when the tokens do not look like a function: no parameter list after a name.
    """
    head = list(tokens if body is None else tokens[:body])
    template_heads: list[str] = []
    template_parameters: tuple[TemplateParameter, ...] = ()
    is_specialisation, i = False, 0
    while i < len(head) and head[i].text == "template":
        if i + 1 >= len(head) or head[i + 1].text != "<":
            return None
        end = matching_angle(head, i + 1)
        template_parameters += parse_template_head(text, head[i + 2 : end])
        is_specialisation = is_specialisation or end == i + 2
        template_heads.append(source_of(text, head[i : end + 1]))
        i = end + 1
    specifiers: list[str] = []
    attributes: list[str] = []
    launch_bounds, linkage_c = None, False
    core: list[Token] = []  # return type and name
    while i < len(head):
        token = head[i]
        following = head[i + 1] if i + 1 < len(head) else None
        if token.text in _SPECIFIERS:
            specifiers.append(token.text)
            if token.text == "extern" and following is not None and following.kind == "string":
                linkage_c = following.text == '"C"'
                specifiers.pop()
                i += 1
        elif token.text in _SPECIFIERS_WITH_ARGUMENTS and following is not None and following.text == "(":
            end = matching(head, i + 1)
            attributes.append(source_of(text, head[i : end + 1]))
            if token.text == "__launch_bounds__":
                launch_bounds = source_of(text, head[i + 2 : end])
            i = end
        elif token.text == "[" and following is not None and following.text == "[":
            i = matching(head, i)
        elif token.text == "decltype" and following is not None and following.text == "(":
            end = matching(head, i + 1)
            core.extend(head[i : end + 1])
            i = end
        elif token.text == "<" and core and core[-1].kind == "identifier" and core[-1].text != "operator":
            end = matching_angle(head, i)
            core.extend(head[i : end + 1])
            i = end
        elif token.text == "(" and core and core[-1].text == "operator":
            core.extend(head[i : i + 2])  # operator()
            i += 1
        elif token.text == "(":
            break
        elif token.text in ("=", "{", "[") and not any(t.text == "operator" for t in core):
            return None
        else:
            core.append(token)
        i += 1
    name_at = _name_start(core)
    if i >= len(head) or name_at is None:
        return None
    end = matching(head, i)
    parameter_tokens = head[i + 1 : end]
    groups = [] if [t.text for t in parameter_tokens] == ["void"] else split_commas(parameter_tokens)
    return Function(
        name=_plain_name(core[name_at:]),
        declarator=source_of(text, core[name_at:]),
        template_head=" ".join(template_heads),
        template_parameters=template_parameters,
        is_specialisation=is_specialisation,
        specifiers=tuple(specifiers),
        attributes=tuple(attributes),
        launch_bounds=launch_bounds,
        linkage_c=linkage_c,
        return_type=" ".join(token.text for token in core[:name_at]),
        parameters=tuple(parse_parameter(text, group) for group in groups),
        suffix=source_of(text, head[end + 1 :]),
        head=source_of(text, head),
        body=None if body is None else source_of(text, tokens[body:]),
        body_start=-1 if body is None else tokens[body].start,
    )


def _name_start(core: Sequence[Token]) -> int | None:
    """Index in `core` (return type, then name) where the name begins, its qualification included."""
    operator = next((i for i, token in enumerate(core) if token.text == "operator"), None)
    i = len(core) - 1 if operator is None else operator
    if operator is None and i >= 0 and core[i].text == ">":
        depth = 0
        while i >= 0:
            depth += {">": 1, "<": -1}.get(core[i].text, 0)
            i -= 1
            if depth == 0:
                break
    if i < 0 or core[i].kind != "identifier" or core[i].text in _TYPE_WORDS | _TYPE_QUALIFIERS:
        return None
    if i >= 1 and core[i - 1].text == "~":
        i -= 1
    while i >= 2 and core[i - 1].text == "::" and core[i - 2].kind == "identifier":
        i -= 2
    return i


def _plain_name(tokens: Sequence[Token]) -> str:
    """The last name of a declarator, without qualification and template arguments."""
    if any(token.text == "operator" for token in tokens):
        return "".join(token.text for token in tokens[[t.text for t in tokens].index("operator") :])
    plain = ""
    for token in tokens:
        if token.text == "<":
            break
        if token.kind == "identifier":
            plain = token.text
    return plain
