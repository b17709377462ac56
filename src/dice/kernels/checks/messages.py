"""Branches that only print: `if self.calls == 1: print("first call")` counts calls, but no result depends on it.

A message consists of constants, shapes, counters and other attributes, and is printed by a function that was not replaced. It
is more than a message if it can run the candidate's own code: a special method, an own stream or handler, an assignment.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterator

from dice.kernels.checks.loggers import (
    HANDLERS,
    LEVELS,
    SAYING,
    is_asked_as_a_logger,
    is_handler,
    is_logger,
    is_set_up,
)
from dice.kernels.checks.once import once
from dice.kernels.checks.python_names import identifier_of, identifiers
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import Token, partner, words
from dice.python_scope import Definition, import_aliases

PRINTS = words("""
    print warnings.warn sys.stdout.write sys.stderr.write sys.stdout.flush sys.stderr.flush
    """) | {f"logging.{level}" for level in LEVELS}
"""Functions that write a message."""
_LISTENERS = words(
    "setattr vars __dict__ redirect_stdout redirect_stderr showwarning formatwarning displayhook new_class make_dataclass "
    "import_module __import__ modules DynamicClassAttribute __loader__ __spec__"
)
_USUAL = PRINTS | {
    f"{module}.{name}"
    for module, names in {
        "logging": "getLogger DEBUG INFO WARNING ERROR CRITICAL basicConfig NullHandler StreamHandler Logger "
        "LoggerAdapter Formatter",
        "warnings": "simplefilter filterwarnings catch_warnings",
    }.items()
    for name in names.split()
}
"""What of logging and of warnings runs no code of the candidate's."""
_OUTPUTS = ("sys.stdout", "sys.stderr")
_WRITING_MODULES = ("logging", "warnings", "sys", "time")
_CONFIGURED = words("level format datefmt style")
_ASKED = words("shape size dim ndim numel dtype device __name__ __qualname__")
_CONTAINERS = ("dict()", "Counter()", "collections.Counter()", "defaultdict(int)", "collections.defaultdict(int)")
_SPELT = words("str tuple list")
_REWRITTEN = words("round abs min max format")
"""Functions of Python's that make another number or text."""
_READ = words("item mean sum abs max min amax amin norm std var element_size nelement tolist detach")
"""Methods of a tensor that leave it as it is. They wait for the device."""
CLOCKS = words("time.time time.perf_counter time.perf_counter_ns time.monotonic time.monotonic_ns time.time_ns")
_ASIDE = re.compile(
    r"StreamCreate|StreamFromPool|\bStream\b|ExternalStream|[tT]hread\b|pthread|HostFunc|\basync\b|Future|ThreadPool"
)
"""In the text of a candidate that may work beside the caller's stream: who waits decides what is there."""
_NAMED_BY_PYTORCH = words("extra_repr _get_name")
"""Methods that run when a module is printed."""
_BASES = words(
    "object torch.autograd.Function typing.NamedTuple typing.TypedDict typing.Protocol typing.Generic abc.ABC dict "
    "enum.Enum enum.IntEnum enum.StrEnum"
)
"""Classes of others, besides PyTorch's modules and Python's errors, that call no further method of the candidate's for a
message: not `datetime.tzinfo`."""
_HARMLESS = words(
    "__init__ __post_init__ __init_subclass__ __call__ __enter__ __exit__ __iter__ __slots__ __name__ __qualname__ __doc__ "
    "__main__ __all__ __version__ __author__ __license__ __file__ __global__ __device__ __host__ __shared__ __constant__ "
    "__restrict__ __forceinline__ __launch_bounds__"
)
"""What looks like the name of a special method, and does not run when something is printed, read, stored or compared."""
_OF_MANY = words("join list tuple sorted sum min max set")
"""What takes all that its one argument gives: of an iterator, what is left."""
_DESCRIBES = _NAMED_BY_PYTORCH | {"__repr__", "__str__"}
_READS = _SPELT | _REWRITTEN | words("len repr int float sorted isinstance super sum")
_TEXTS = words("join format items keys values extra_repr __repr__ __str__ numel size dim startswith upper lower")


def only_prints(source: PythonSource, branch: ast.AST) -> bool:
    """Whether a Python branch does nothing but print."""
    return isinstance(branch, ast.If) and asks_plainly(source, branch.test) and says_only(source, branch)


def asks_plainly(source: PythonSource, test: ast.expr) -> bool:
    """Whether a test compares numbers, which runs no code of the candidate's, or asks a logger what it says."""
    if not isinstance(test, _TESTS):
        return False
    asked = [node for part in _without_levels(source, test) for node in ast.walk(part)]
    owners = {node.value for node in asked if isinstance(node, ast.Attribute)}  # of `wrapper.calls`
    own = any(source.definitions(name) for name in identifiers([node for node in asked if node not in owners]))
    plain = all((isinstance(node, _PLAIN) and _is_data(source, node)) or _is_item(source, node) for node in asked)
    return not own and plain


def says_only(source: PythonSource, branch: ast.AST) -> bool:
    """Whether a branch does nothing but print, whatever is asked before."""
    if not isinstance(branch, ast.If) or branch.orelse or has_special_methods(source) or is_listened_to(source):
        return False
    return all(is_a_line(source, statement) for statement in branch.body)


def is_a_line(source: PythonSource, statement: ast.stmt) -> bool:
    """Whether a statement does nothing but print, where nobody listens."""
    match statement:
        case ast.Expr(value=ast.Call(func=function, args=arguments, keywords=keywords) as call):
            says = prints(source, function) or _only_waits(source, call)
            return says and all(_is_plain(source, part) for part in [*arguments, *keywords])
    return False


def _without_levels(source: PythonSource, test: ast.expr) -> list[ast.expr]:
    """The parts of a test, but for whether a logger says such things at all."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return [part for part in parts if not _asks_a_logger(source, part)]


def _asks_a_logger(source: PythonSource, part: ast.expr) -> bool:
    match part:
        case ast.Call(func=ast.Attribute(value=logger, attr="isEnabledFor"), args=[level], keywords=[]):
            return is_logger(source, identifier_of(logger) or "") and _is_plain(source, level)
    return False


def _only_waits(source: PythonSource, call: ast.Call) -> bool:
    """Whether it waits for the device, to say how long something took, where nothing runs beside the caller's stream."""
    return source.dotted(call.func) == "torch.cuda.synchronize" and not may_work_aside(source)


def may_work_aside(source: PythonSource) -> bool:
    """Whether a candidate names another stream or a thread, in Python or in C++."""
    return any(map(_ASIDE.search, source.lines))


_TESTS = ast.Compare | ast.BoolOp | ast.UnaryOp | ast.BinOp
_PLAIN = (
    ast.UnaryOp
    | ast.unaryop
    | ast.BoolOp
    | ast.boolop
    | ast.Compare
    | ast.cmpop
    | ast.BinOp
    | ast.operator
    | ast.Attribute
    | ast.Name
    | ast.Constant
    | ast.expr_context
)


def _is_item(source: PythonSource, node: ast.AST) -> bool:
    """Whether it is a number in a container of Python's own, such as `calls["relu"]`: to read it runs no other code."""
    name = identifier_of(node.value) if isinstance(node, ast.Subscript) else None
    if name is None or not _is_a_container(source, name):
        return False
    return not _makes_what_is_read(source, name) or ast.unparse(node) in _stored(source)


@once
def _makes_what_is_read(source: PythonSource, name: str) -> bool:
    return any("defaultdict" in ast.unparse(value) for value in source.values(name))


@once
def _is_a_container(source: PythonSource, name: str) -> bool:
    values = source.values(name)
    return bool(values) and all(
        isinstance(value, ast.Dict | ast.List | ast.Constant)
        or (
            isinstance(value, ast.Call)
            and ast.unparse(value) in _CONTAINERS
            and not source.definitions(identifier_of(value.func) or "")
        )
        for value in values
    )


@once
def _stored(source: PythonSource) -> set[str]:
    """Texts of the elements that the file stores to."""
    stored = (each for each in source.nodes if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store))
    return {ast.unparse(each) for each in stored}


@functools.lru_cache(maxsize=8)
def has_special_methods(source: PythonSource) -> bool:
    """Whether an object of the candidate's may run code when it is printed, read, stored to or compared."""
    named = [node.name for node in source.nodes if isinstance(node, Definition) and not _only_describes(source, node)]
    named += [name for name in source.mentioned if source.values(name)]
    named += [text for _, text in source.strings()]  # {"__str__": told}
    special = (name for name in named if name[:2] == name[-2:] == "__" and name.isidentifier())
    bases = (base for node in source.nodes if isinstance(node, ast.ClassDef) for base in node.bases)
    return (
        any(name not in _HARMLESS for name in special)
        or not _NAMED_BY_PYTORCH.isdisjoint(named)
        or not all(_is_plain_base(source, base) for base in bases)
    )


def _only_describes(source: PythonSource, node: ast.AST) -> bool:
    """Whether a function says what an object is, and does nothing but read what that is made of."""
    if not isinstance(node, ast.FunctionDef) or node.name not in _DESCRIBES or node.decorator_list:
        return False
    return all(_only_reads(source, part) for statement in node.body for part in ast.walk(statement))


def _only_reads(source: PythonSource, part: ast.AST) -> bool:
    match part:
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in _TEXTS and source.is_called(part):
            return not source.definitions(name)  # nor a method of the file's own
        case ast.Attribute() | ast.Subscript():
            return isinstance(part.ctx, ast.Load) and _is_data(source, part)
        case ast.Call(func=ast.Name(id=name), args=given):
            known = name in _READS and not source.definitions(name) and not source.values(name)
            return known and (name not in _OF_MANY or all(_is_whole(source, each) for each in given))
        case ast.Call(func=ast.Attribute(attr=name), args=given):
            return name in _TEXTS and (name not in _OF_MANY or all(_is_whole(source, each) for each in given))
        case ast.comprehension(iter=given) | ast.For(iter=given) | ast.Starred(value=given):
            return _is_whole(source, given)
        case ast.Global() | ast.Nonlocal() | ast.Lambda() | ast.NamedExpr() | ast.Yield() | ast.Await() | ast.Delete():
            return False
    return True


def _is_whole(source: PythonSource, given: ast.expr) -> bool:
    """Whether to go through a value leaves it as it was: a container that the file writes out, a comprehension."""
    match given:
        case ast.Name() | ast.Attribute():
            made = source.values(identifier_of(given) or "")
            return bool(made) and all(
                isinstance(value, ast.Constant | ast.List | ast.Tuple | ast.Dict) for value in made
            )
        case ast.Call(func=ast.Attribute(value=owner, attr="items" | "keys" | "values")):
            return _is_whole(source, owner)
    return isinstance(given, ast.GeneratorExp | ast.ListComp | ast.Constant | ast.List | ast.Tuple)


def _is_plain_base(source: PythonSource, base: ast.expr) -> bool:
    name = source.dotted(base.value if isinstance(base, ast.Subscript) else base) or ""
    kind = vars(builtins).get(name)
    error = isinstance(kind, type) and issubclass(kind, Exception)
    return (
        error or name in _BASES or name.startswith("torch.nn.") or bool(source.definitions(identifier_of(base) or ""))
    )


@functools.lru_cache(maxsize=8)
def is_listened_to(source: PythonSource) -> bool:
    """Whether a message of constants and numbers could run the candidate's own code: a stream, what logging calls."""
    stored = {
        node.attr for node in source.nodes if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
    }
    return (
        source.swallows_errors  # a message can be made to fail
        or bool(stored & ({"stdout", "stderr"} | LEVELS))
        or ("log" in stored and not is_logger(source, "log"))
        or bool(identifiers(source.nodes) & _LISTENERS)
        or not source.imported.isdisjoint(("logging.*", "warnings.*"))
        or not all(
            means_one_thing(source, name) for name, path in source.aliases.items() if path.startswith(_WRITING_MODULES)
        )
        or not all(_is_usual(source, node) for node in source.nodes)
    )


@functools.lru_cache(maxsize=8)
def _meanings(source: PythonSource) -> dict[str, set[str]]:
    """Imported name -> all that the file imports by it."""
    found: dict[str, set[str]] = {}
    for node in source.nodes:
        for name, meant in import_aliases(node).items() if isinstance(node, ast.Import | ast.ImportFrom) else ():
            found.setdefault(name, set()).add(meant)
    return found


def means_one_thing(source: PythonSource, name: str) -> bool:
    """Whether an imported name stands for one thing of a library wherever it is read, and for nothing of the file's own."""
    meant = _meanings(source).get(name, ())
    given = (
        node for node in source.mentions(name) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    )
    return len(meant) == 1 and not source.definitions(name) and next(given, None) is None


def _is_usual(source: PythonSource, node: ast.AST) -> bool:
    """Whether what a file does with loggers and warnings calls none of its own functions for a message."""
    match node:
        case ast.Name(ctx=ast.Load(), id=name) if source.aliases.get(name, "").startswith(("logging", "warnings")):
            return _is_usual_name(source, node)
        case ast.Name(id="property") | ast.Attribute(attr="cached_property") | ast.Name(id="cached_property"):
            above = source.parent(node)
            return isinstance(above, Definition) and node in above.decorator_list
        case ast.Attribute(attr="stdout" | "stderr"):
            above = source.parent(node)
            return not isinstance(above, ast.Attribute) or above.attr in ("write", "flush", "isatty")
        case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()) if is_logger(source, identifier_of(node) or ""):
            says = isinstance(node, ast.Attribute) and source.is_called(node)  # log.log()
            return says or is_asked_as_a_logger(source, node)
        case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()) if is_handler(source, node):
            return is_set_up(source, node)
        case ast.Call(func=function, args=arguments, keywords=keywords):
            match source.dotted(function):
                case "logging.getLogger":
                    return isinstance(source.parent(node), ast.Assign) or is_asked_as_a_logger(source, node)
                case "logging.Formatter":
                    return not keywords and all(isinstance(argument, ast.Constant) for argument in arguments)
                case "logging.basicConfig":
                    return {keyword.arg or "" for keyword in keywords} <= _CONFIGURED
                case "type":
                    return len(arguments) == 1
                case "logging.NullHandler" | "logging.StreamHandler":
                    return not keywords and all(source.dotted(argument) in _OUTPUTS for argument in arguments)
    return True


def _is_usual_name(source: PythonSource, node: ast.expr) -> bool:
    """Whether a name of these modules is one of those above; handlers are only made for a logger."""
    above = source.parent(node)
    if isinstance(above, ast.Attribute):
        return _is_usual_name(source, above)
    name = source.dotted(node)
    return name in _USUAL and (name not in HANDLERS or source.is_called(node))


def prints(source: PythonSource, function: ast.expr) -> bool:
    """Whether a call of it writes a message, by Python's own functions or by a logger."""
    if source.dotted(function) in PRINTS:
        return True
    if not isinstance(function, ast.Attribute) or function.attr not in SAYING:
        return False
    named = [name for name in identifiers([function.value]) if source.values(name)]
    return bool(named) and all(is_logger(source, name) for name in named)


def _is_plain(source: PythonSource, part: ast.AST) -> bool:
    """Whether an argument of a message consists of constants, names and attributes: to read them runs no code."""
    if isinstance(part, ast.keyword) and part.arg == "file":
        return source.dotted(part.value) in _OUTPUTS
    for node in ast.walk(part):
        if isinstance(node, ast.Attribute):
            plain = _is_data(source, node) or (node.attr in _READ and not source.definitions(node.attr))
        elif isinstance(node, ast.Call):
            spelt = source.dotted(node.func) in _SPELT and all(_is_kind(source, item) for item in node.args)
            clock = source.dotted(node.func) in CLOCKS and not node.args
            name = identifier_of(node.func) or ""
            asked = isinstance(node.func, ast.Attribute) and node.func.attr in _ASKED | _READ
            waits = asked and name in _READ
            own = bool(source.definitions(name)) or _is_an_attribute(source, name)
            rewritten = source.dotted(node.func) in _REWRITTEN and not own and not source.values(name)
            rewritten = rewritten and (name not in _OF_MANY or len(node.args) > 1)
            plain = spelt or clock or rewritten or (asked and not own and not (waits and may_work_aside(source)))
        else:
            plain = isinstance(node, _SPOKEN) or _is_item(source, node)
        if not plain:
            return False
    return True


def _is_kind(source: PythonSource, node: ast.expr) -> bool:
    """Whether it is a kind or a size: of an iterator, a list takes what is left."""
    return isinstance(node, ast.Attribute) and node.attr in _ASKED and not _is_an_attribute(source, node.attr)


def _is_data(source: PythonSource, node: ast.AST) -> bool:
    """Whether it is no attribute that runs a function when it is read."""
    return not isinstance(node, ast.Attribute) or _names_data(source, node.attr)


@once
def _names_data(source: PythonSource, name: str) -> bool:
    """Whether no function has this name, and no class an attribute of it, but for constants."""
    return not source.definitions(name) and not any(
        _is_of_a_class(source, value) or source.definitions(identifier_of(value) or "")
        for value in source.values(name)
        if not isinstance(value, ast.Constant)
    )


def _is_of_a_class(source: PythonSource, value: ast.expr) -> bool:
    """Whether a value is given to a name in a class, or to an attribute of anything but a method's own object."""
    statement = source.parent(value)
    while isinstance(statement, ast.expr):
        statement = source.parent(statement)
    around = next((above for above in source.ancestors(value) if isinstance(above, Definition)), None)
    return isinstance(around, ast.ClassDef) or any(
        isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and identifier_of(node.value) != "self"
        for node in ast.walk(statement or value)
    )


@once
def _is_an_attribute(source: PythonSource, name: str) -> bool:
    """Whether a file gives an attribute of this name to anything."""
    return any(
        isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) for node in source.mentions(name)
    ) or any(_is_of_a_class(source, value) for value in source.values(name))


_SPOKEN = (
    ast.Constant
    | ast.Name
    | ast.expr_context
    | ast.JoinedStr
    | ast.FormattedValue
    | ast.Tuple
    | ast.keyword
    | ast.BinOp
    | ast.operator
)


_STREAMS = words("cerr cout clog")
_WRITERS = words("printf fprintf puts fputs")
_OF_TENSORS = words("sizes size numel dim dtype scalar_type device toString c_str")
_SAID = _OF_TENSORS | words("cerr cout clog endl flush std stderr stdout int long")
_NATIVE_LISTENERS = words("rdbuf operator fopencookie freopen streambuf exceptions")
_LONG = 1000
"""Tokens of a statement."""
_WRITING = re.compile(r"%[^%a-zA-Z]*[hlqjzt]*n")
"""A printf format that stores the number of characters written."""


def replaces_writers(tokens: list[Token]) -> bool:
    """Whether a C++ source replaces what writes its messages."""
    return (
        any(map(_is_replaced, tokens))
        or any(_declares(tokens, index) for index in range(len(tokens)))
        or not _OF_TENSORS.isdisjoint(_members(tokens))
    )


def is_message(tokens: list[Token], start: int, counters: set[str]) -> bool:
    """Whether a C++ branch, from the token after its condition, does nothing but print, and has no `else`."""
    braced = start < len(tokens) and tokens[start].text == "{"
    end = partner(tokens, start) if braced else _end(tokens, start)
    if end is None or (end + 1 < len(tokens) and tokens[end + 1].text == "else"):
        return False
    inside = tokens[start + 1 : end] if braced else tokens[start : end + 1]
    statements: list[list[Token]] = [[]]
    for token in inside:
        statements[-1].append(token)
        if token.text == ";":
            statements.append([])
    return not statements.pop() and all(_says(statement, counters) for statement in statements)


def _end(tokens: list[Token], start: int) -> int | None:
    """Index of the `;` that ends the statement at `start`; None when it is longer than any message."""
    return next((i for i in range(start, min(start + _LONG, len(tokens))) if tokens[i].text == ";"), None)


def _declares(tokens: list[Token], index: int) -> bool:
    """Whether a function or a stream of the source's own is declared, behind its type, under the name of what writes."""
    ahead = tokens[index - 1] if index else None
    if ahead is None or tokens[index].text not in _WRITERS | _MANIPULATORS:
        return False
    return ahead.text in ("*", "&", ">") or (ahead.kind == "identifier" and ahead.text not in ("else", "return", "do"))


def _members(tokens: list[Token]) -> Iterator[str]:
    """Names that stand by themselves in the source's own classes, and for more than a number."""
    end = 0
    for index, token in enumerate(tokens):
        ahead = tokens[index - 1].text if index else ""
        if token.text in ("struct", "class", "union") and ahead not in ("<", ","):  # no template's parameter
            opener = next((i for i in range(index, min(index + _LONG, len(tokens))) if tokens[i].text in "{;"), index)
            end = max(end, partner(tokens, opener) or 0) if tokens[opener].text == "{" else end
        called = tokens[index + 1 : index + 2] and tokens[index + 1].text == "("
        if index < end and (called or ahead not in _NUMBERS) and ahead not in (".", "->"):
            yield token.text


_MANIPULATORS = words("endl flush cerr cout clog")
_NUMBERS = words("int long int64_t size_t unsigned float double bool")
"""Types of what cannot be called."""


def _is_replaced(token: Token) -> bool:
    if token.kind == "directive":
        return "define" in token.text and bool(set(re.findall(r"\w+", token.text)) & (_WRITERS | _SAID))
    return token.text in _NATIVE_LISTENERS


def _says(statement: list[Token], counters: set[str]) -> bool:
    names = [token.text for token in statement if token.kind == "identifier"]
    head = next((name for name in names if name != "std"), "")
    text = "".join(token.text.strip('"') for token in statement if token.kind == "string")
    for index, token in enumerate(statement):
        following = statement[index + 1].text if index + 1 < len(statement) else ""
        asked = token.text in _SAID or token.text in _WRITERS or token.text in counters or following == "."
        called = following == "(" and statement[index - 1].text not in (".", "->") and token.text not in _WRITERS
        if token.kind == "identifier" and (not asked or called):
            return False  # a function of its own, or what only looks like a counter
        if token.kind not in ("identifier", "string", "number") and token.text not in _PUNCTUATION:
            return False
        if token.kind == "string" and index and statement[index - 1].kind == "identifier":
            return False  # a prefix, or a macro that belongs to the text
    return head in _STREAMS | _WRITERS and not _WRITING.search(text)


_PUNCTUATION = words("( ) , ; . << ::")
