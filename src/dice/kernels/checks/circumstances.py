"""Choices of forward by what tells about the process and the machine instead of the inputs: a clock, the callers' files, the
number of threads, the version of an input; and on state that forward itself advances, however it counts, by draws too.

A kernel may ask such things, for a log or to choose a block size. It hides something where the answer decides whether its
kernels run, or whether PyTorch computes: no run shows the branch that was not taken.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from dice.kernels.checks.asides import is_aside
from dice.kernels.checks.between_calls import between_calls
from dice.kernels.checks.choices import Choice, Outcomes, Work, choices, is_between_both, work_of
from dice.kernels.checks.decided_by_numbers import choices_by_numbers
from dice.kernels.checks.errors import ends_with_an_error
from dice.kernels.checks.extensions import builds, extension_names
from dice.kernels.checks.finding import finding, one_of_each
from dice.kernels.checks.inputs import forward_parameters
from dice.kernels.checks.kept_ways import kept_ways
from dice.kernels.checks.lookups import lookups
from dice.kernels.checks.made_from import made_from, returned
from dice.kernels.checks.messages import says_only
from dice.kernels.checks.numbers_read import numbers_read
from dice.kernels.checks.once import once
from dice.kernels.checks.per_process import per_process
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource, Try
from dice.kernels.checks.reports import only_reports
from dice.kernels.checks.result_checks import only_checks_results
from dice.kernels.checks.sensitive import STDLIB
from dice.kernels.checks.weights import is_weight
from dice.kernels.records.verdict import Finding
from dice.kernels.source.lexer import words
from dice.python_scope import Definition, Function

_PURE = words(
    "math cmath operator functools itertools typing collections dataclasses enum abc copy types string re numbers struct "
    "array bisect heapq contextlib fractions decimal statistics textwrap keyword json hashlib base64 logging ctypes"
)
"""Modules of the standard library that tell nothing about process and machine."""
_MODULES = STDLIB - _PURE | {"psutil", "pynvml"}
_HARMLESS = ("importlib.import_module", "os.environ", "os.getenv", "os.path.", "os.fspath", "sys.getsizeof")
"""A program's own settings."""
_OF_BUILDS = ("shutil.which", "importlib.util.find_spec", "platform.system", "platform.machine", "torch.cuda.", "sys.")
"""What says whether an extension can be built at all: a file that is imported may choose PyTorch by it."""
_SAID_TO_KERNELS = (
    *_OF_BUILDS,
    "os.cpu_count",
    "os.sched_getaffinity",
    "multiprocessing.cpu_count",
    "time.",
    "timeit.",
    "datetime.",
    "random.",
    "threading.local",
    "threading.Lock",
    "threading.RLock",
    "queue.",
    "weakref.",
)
"""What a block size, a way that was measured or a mask may follow. An experiment sets clocks ahead; draws show in values."""
_OF_PYTORCH = (
    "torch.get_num_threads",
    "torch.get_num_interop_threads",
    "torch.initial_seed",
    "torch.get_rng_state",
    "torch.random.",
    "torch.cuda.memory",
    "torch.cuda.max_memory",
    "torch.cuda.mem_get_info",
    "torch.cuda.utilization",
    "torch.cuda.clock_rate",
    "torch.cuda.device_count",
    "torch.cuda.get_device_name",
)
_DRAWS = words("torch.rand torch.randn torch.randint torch.randperm torch.bernoulli torch.normal")
"""What forward draws with them follows how often it drew before; what `__init__` draws is a weight."""
_OF_ADDRESSES = words("data_ptr id hash")
_ALIGNED = 64
"""Bytes; on a GPU 512."""
_OF_CONTENTS = words(
    "equal allclose isclose assert_close all any min max amin amax sum mean item tolist count_nonzero nonzero is_nonzero "
    "array_equal unique"
)
"""Functions and methods that bring numbers of a tensor to the host."""
_OF_PYTHON = words("all any min max sum")
"""Functions of the same name that are Python's own."""
_KINDS = words("is_cuda device dtype is_contiguous layout requires_grad")
"""Attributes and methods of a tensor that follow neither its content nor its place."""
_SIZES = words("dim ndim size shape numel")
"""Those that follow its content where that decides how many elements it has."""
_COUNTED = words(
    "nonzero argwhere unique unique_consecutive masked_select where item tolist count_nonzero bincount empty zeros ones full "
    "new_empty new_zeros new_ones new_full arange range repeat_interleave resize_ narrow int len"
)
"""Calls whose result has as many elements as values say."""
_CONSTANT = ast.Constant | ast.Slice | ast.Tuple | ast.UnaryOp | ast.unaryop | ast.expr_context
_HISTORY = words("_version _base")
"""Attributes of an input that tell what was done with it before."""
_OF_THE_PROCESS = words("RecursionError MemoryError")
"""Errors that tell how deep the callers are and what memory is left, not what an input is."""
_HELD_WEAKLY = words("weakref.ref weakref.proxy")
"""What tells whether something is still there: a weight is."""
_FAR = 6


def circumstance_findings(
    source: PythonSource,
    reference: PythonSource | None,
    readers: Set[str] = frozenset(),
    writers: Set[str] = frozenset(),
) -> list[Finding]:
    """`environment_sniffing` and `call_counting`, with the first choice in forward between kernels and none, unless the
    reference makes such choices, too. The same, and `input_sniffing`, with one between kernels and PyTorch by where an
    input lies, and by the content of a tensor. readers: functions of C++ that read a tensor's numbers and return one.
    writers: those that return tensors, or nothing."""
    return one_of_each(
        finding(name, "static", source.line(node))
        for name, node in _choices_of_work(source, reference, readers, writers)
    )


@functools.lru_cache(maxsize=8)
def chooses_by_content(source: PythonSource) -> bool:
    """Whether forward makes any choice by numbers of a tensor."""
    numbers = numbers_read(source, set(forward_parameters(source)))
    return next(_asked(source, _content(source)), None) is not None or any(
        any(map(numbers.by, choice.conditions)) for choice in choices(source, source.in_forward)
    )


def _choices_of_work(
    source: PythonSource, reference: PythonSource | None, readers: Set[str], writers: Set[str]
) -> Iterator[tuple[str, ast.AST]]:
    work = work_of(source)
    for name, tells in (("environment_sniffing", _circumstance), ("call_counting", _count)):
        if reference is not None and next(_asked(reference, tells(reference)), None) is not None:
            continue
        for choice in _asked(source, tells(source)):
            if name == "call_counting" and _tells_nobody(source, choice.node):
                continue
            done = work.ways(choice.outcomes)
            only_checks = _checks(source, choice.node) and not any(each.launches for each in done)
            if (len(done) > 1 and not only_checks) or work.name_both(choice.outcomes):
                yield name, choice.node
    if reference is None or next(kept_ways(reference), None) is None:
        yield from (("call_counting", node) for node in kept_ways(source) if not is_aside(source, node))

    for name, tells in (("input_sniffing", _content), ("environment_sniffing", _address)):
        if reference is not None and next(_asked(reference, tells(reference)), None) is not None:
            continue
        for choice in _asked(source, tells(source)):
            if work.are_both(choice.outcomes):
                yield name, choice.node

    if reference is not None and not chooses_by_content(reference):
        yield from (("input_sniffing", node) for node in choices_by_numbers(source, reference, readers, writers))

    if reference is None or not any(map(_own_business(reference), reference.in_forward)):
        yield from (("environment_sniffing", node) for node in _told_to_kernels(source))

    asking = _asking(source, _circumstance(source, but_for=_OF_BUILDS))
    defined: dict[Outcomes, set[Work]] = {}
    for conditions, outcomes in _at_import(source) if asking else ():
        asked = next((condition for condition in conditions if condition in asking), None)
        if asked is not None and outcomes not in defined:
            defined[outcomes] = {_defined(source, block) for block in outcomes.blocks}
        if asked is not None and is_between_both(defined[outcomes]):
            yield "environment_sniffing", asked


def _defined(source: PythonSource, outcome: Sequence[ast.AST]) -> Work:
    """The work of an outcome, where a name that is given something else than an extension launches nothing."""
    blocks = [part for node in outcome for part in (node.body if isinstance(node, ast.ExceptHandler) else [node])]
    return work_of(source).of(node.value if isinstance(node, ast.Assign) else node for node in blocks)


def _at_import(source: PythonSource) -> Iterator[tuple[Sequence[ast.AST], Outcomes]]:
    """Choices that are made when the file is imported, or the model is made: by what, and what each outcome defines. Any
    statement that may fail is one, too."""
    maker = source.method(source.entry, "__init__")
    made = maker.body if maker is not None else []
    waiting: list[ast.AST] = [node for node in [*source.tree.body, *made] if not isinstance(node, Definition)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Try):
            yield node.body, Outcomes([[*node.body, *node.orelse], node.handlers])
        yield from ((choice.conditions, choice.outcomes) for choice in choices(source, [node]))
        waiting += [part for part in ast.iter_child_nodes(node) if not isinstance(part, Definition | ast.Lambda)]


Tells = Callable[[ast.AST], bool]


def _content(_: PythonSource) -> Tells:
    """Whether a node brings numbers of a tensor to the host, an input's or a weight's."""

    def tells(node: ast.AST) -> bool:
        if not isinstance(node, ast.Call) or identifier_of(node.func) not in _OF_CONTENTS:
            return False
        return not (isinstance(node.func, ast.Name) and node.func.id in _OF_PYTHON)

    return tells


def _address(source: PythonSource) -> Tells:
    """Whether a node asks where an input lies, for more than whether vector loads may read it."""
    of_inputs = source.mentioning(forward_parameters(source))

    @functools.cache
    def is_for_alignment(name: str) -> bool:
        uses = [node for node in source.mentions(name) if isinstance(node, ast.Name | ast.Attribute)]
        return all(_is_rest(source.parent(use), use) for use in uses if isinstance(use.ctx, ast.Load))

    def is_alignment(address: ast.AST) -> bool:
        """Whether an address is only asked for its rest: `x.data_ptr() % 16`, `x.data_ptr() & 15`, also through a variable.
        All memory that PyTorch allocates is aligned to `_ALIGNED` bytes: the answer tells no two fresh tensors apart."""
        match source.parent(address):
            case ast.Assign(targets=[ast.Name(id=name)]):
                return is_for_alignment(name)
            case above:
                return _is_rest(above, address)

    def tells(node: ast.AST) -> bool:
        if not isinstance(node, ast.Call) or identifier_of(node.func) not in _OF_ADDRESSES or node not in of_inputs:
            return False
        return not (identifier_of(node.func) == "data_ptr" and is_alignment(node))

    return tells


def _is_rest(node: ast.AST | None, address: ast.AST) -> bool:
    if not isinstance(node, ast.BinOp) or node.left is not address or not isinstance(node.right, ast.Constant):
        return False
    largest = {ast.Mod: _ALIGNED, ast.BitAnd: _ALIGNED - 1}.get(type(node.op), 0)
    return isinstance(node.right.value, int) and 0 < node.right.value <= largest


def _asked(source: PythonSource, tells: Tells) -> Iterator[Choice]:
    """The choices in forward that ask what tells."""
    asking = _asking(source, tells)
    if asking:
        yield from (choice for choice in choices(source, source.in_forward) if not asking.isdisjoint(choice.conditions))


def _told_to_kernels(source: PythonSource) -> Iterator[ast.Call]:
    """Calls of an extension that are told how a circumstance compares with something: the kernels may do less then."""
    asking = _asking(source, _own_business(source))
    if not asking:
        return
    conditions = (node for node in source.nodes if isinstance(node, ast.Compare) and node in asking)
    by_value = (node for node in conditions if not all(isinstance(item, ast.Is | ast.IsNot) for item in node.ops))
    told = made_from(source, by_value, lambda name: [*source.values(name), *returned(source, name)], _FAR)
    of_extensions = source.mentioning(extension_names(source))
    for node in source.in_forward:
        if not isinstance(node, ast.Call) or node.func not in of_extensions or builds(source, node):
            continue
        if not told.isdisjoint([*node.args, *(keyword.value for keyword in node.keywords)]):
            yield node


def _own_business(source: PythonSource) -> Tells:
    """Whether a node asks for a circumstance that no kernel has to know."""

    def tells(node: ast.AST) -> bool:
        name = (source.dotted(node.func) or "") if isinstance(node, ast.Call) else ""
        return _is_circumstance(source, name) and not name.startswith(_SAID_TO_KERNELS)

    return tells


def _circumstance(source: PythonSource, but_for: tuple[str, ...] = ()) -> Tells:
    """Whether a node asks for a circumstance, `but_for` those with these names."""
    of_inputs, forward = source.mentioning(forward_parameters(source)), source.in_forward
    of_the_process = per_process(source)

    def tells(node: ast.AST) -> bool:
        if isinstance(node, ast.Name) and node.id in _OF_THE_PROCESS and not isinstance(source.parent(node), ast.Raise):
            return True
        if isinstance(node, ast.ExceptHandler) and _falls(source, node):
            return True
        if node in of_the_process:
            return True
        if identifier_of(node) in _HISTORY:
            return node in of_inputs
        name = (source.dotted(node.func) or "") if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in _HELD_WEAKLY and node.args and is_weight(source, node.args[0]):
            return False
        return (not (but_for and name.startswith(but_for)) and _is_circumstance(source, name)) or (
            name in _DRAWS and node in forward
        )

    return tells


def _falls(source: PythonSource, handler: ast.ExceptHandler) -> bool:
    """Whether a handler may catch that a function has called itself too often."""
    attempt = source.parent(handler)
    above = next((node for node in source.ancestors(handler) if isinstance(node, Function)), None)
    if above is None or not isinstance(attempt, ast.Try | ast.TryStar):
        return False
    return above.name in _called_in(source, attempt)


@once
def _called_in(_: PythonSource, attempt: Try) -> set[str | None]:
    """Names of what the body of a `try` calls."""
    inside = (node for part in attempt.body for node in ast.walk(part))
    return {identifier_of(node.func) for node in inside if isinstance(node, ast.Call)}


def _count(source: PythonSource) -> Tells:
    """Whether a node reads what outlives a call and what forward changes by what it was."""
    return between_calls(source).is_stepped


def _tells_nobody(source: PythonSource, node: ast.AST) -> bool:
    reports = says_only(source, node) or only_reports(source, node)
    return reports or only_checks_results(source, node) or is_aside(source, node)


def _checks(source: PythonSource, node: ast.AST) -> bool:
    """Whether it is the condition of an error: `if self.calls % 1000 == 0 and not close(y, z): raise`."""
    above = source.parent(node)
    return isinstance(above, ast.If) and above.test is node and ends_with_an_error(source, above)


def _asking(source: PythonSource, tells: Tells) -> Set[ast.AST]:
    """What is made from something that tells, also through variables and functions. How an extension was built does not
    count; nor do comparisons of durations: whoever measures which way is faster asks for no circumstance; nor what kind of
    tensor something is, where its content does not decide that."""
    telling = [node for node in source.nodes if tells(node)]
    if not telling:
        return frozenset()
    extensions, is_duration = extension_names(source), _durations(source)
    chosen = {sized: _chosen(source, sized=sized) for sized in (True, False)}

    def hides(node: ast.AST) -> bool:
        if isinstance(node, ast.Compare):
            return all(is_duration(side, 0) for side in [node.left, *node.comparators])
        sized = isinstance(node, ast.Attribute) and node.attr in _SIZES
        kind = sized or (isinstance(node, ast.Attribute) and node.attr in _KINDS)
        own = isinstance(node, ast.Attribute) and identifier_of(node.value) in ("self", "cls")  # self.size += 1
        return isinstance(node, ast.Attribute) and kind and not own and node.value not in chosen[sized]

    def stands_for(name: str) -> Iterable[ast.AST]:
        return () if name in extensions else [*source.values(name), *_functions(source, name)]

    found = made_from(source, telling, stands_for, _FAR, hides=hides)
    asked_for = {name for name, value in lookups(source) if value not in found}  # not for what is then kept
    if found.isdisjoint(asked_for):
        return found
    return made_from(source, telling, stands_for, _FAR, follows=lambda mention: mention not in asked_for, hides=hides)


def _chosen(source: PythonSource, *, sized: bool) -> Set[ast.AST]:
    """What is, or has a name in it that stands for, one of several: its kind may tell which. `sized`: or has a size that
    values decide, however far from here."""

    def picks(node: ast.AST) -> bool:
        if isinstance(node, ast.Subscript) and not all(isinstance(part, _CONSTANT) for part in ast.walk(node.slice)):
            return True
        return isinstance(node, ast.IfExp | ast.BoolOp | ast.Compare) or (sized and identifier_of(node) in _COUNTED)

    return made_from(source, filter(picks, source.nodes), source.values, len(source.nodes) if sized else 1)


def _durations(source: PythonSource) -> Callable[[ast.expr, int], bool]:
    """Tells of an expression, so many steps from where it is asked for, whether it is a difference of two readings, or made
    of such: `min(end - begun, other)`."""

    @functools.cache
    def is_named(name: str, depth: int) -> bool:
        found = [item for item in source.values(name) if not isinstance(item, ast.Constant)]
        return bool(found) and all(is_duration(item, depth) for item in found)

    @functools.cache
    def is_duration(value: ast.expr, depth: int) -> bool:
        match value:
            case _ if depth > _FAR:
                return False
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return not (isinstance(left, ast.Constant) or isinstance(right, ast.Constant))
            case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
                return is_duration(left, depth + 1) or is_duration(right, depth + 1)
            case ast.Call(func=ast.Name(id="min" | "max" | "sum")):
                return all(is_duration(item, depth + 1) for item in value.args)
        return is_named(identifier_of(value) or "", depth + 1)

    return is_duration


def _functions(source: PythonSource, name: str) -> list[ast.AST]:
    """What runs when a name is called, or when an object of its class is asked whether it is true."""
    found: list[ast.AST] = []
    for item in source.definitions(name):
        found += [item] if not isinstance(item, ast.ClassDef) else [part for part in item.body if _is_asked(part)]
    return found


def _is_asked(part: ast.stmt) -> bool:
    return isinstance(part, ast.FunctionDef) and part.name in (
        "__bool__",
        "__len__",
        "__eq__",
        "__lt__",
        "__gt__",
        "__index__",
    )


def _is_circumstance(source: PythonSource, name: str) -> bool:
    if name.startswith(_OF_PYTORCH):
        return True
    root = name.partition(".")[0]
    return root in _MODULES and source.is_imported(name) and not name.startswith(_HARMLESS)
