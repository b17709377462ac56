"""Branches behind the work that only look at a result: an error ends the call where it is wrong, else nothing is left.

What looks is a few functions that give a truth or a number of a tensor and change none. Behind the branch the call returns
what it had before, so that not even memory that the check gave back can come into it.
"""

from __future__ import annotations

import ast
import builtins

from dice.kernels.checks.errors import ends_with_an_error
from dice.kernels.checks.messages import asks_plainly, has_special_methods
from dice.kernels.checks.named import says_all_names
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.torch_calls import names_computation
from dice.kernels.source.lexer import words
from dice.python_scope import parameter_defaults

_LOOKS = {
    f"torch.{name}" for name in words("all any isfinite isnan isinf allclose equal abs max min amax amin sum mean relu")
}
"""Functions that change nothing, however they are given their arguments without a name."""
_ASSERTS = "torch.testing.assert_close"
_NAMED = words("rtol atol equal_nan dim keepdim")
_METHODS = words("all any isfinite isnan abs max min amax amin sum mean item size dim numel float")
_OF_PYTHON = words("bool tuple abs float len")
_SPELT = (
    ast.If
    | ast.Raise
    | ast.Name
    | ast.Attribute
    | ast.Subscript
    | ast.Slice
    | ast.Tuple
    | ast.Constant
    | ast.Compare
    | ast.BoolOp
    | ast.UnaryOp
    | ast.BinOp
    | ast.JoinedStr
    | ast.FormattedValue
    | ast.keyword
    | ast.expr_context
    | ast.operator
    | ast.unaryop
    | ast.boolop
    | ast.cmpop
)


def only_checks_results(source: PythonSource, branch: ast.AST) -> bool:
    """Whether a branch of forward does nothing but end the call with an error, and the call only returns behind it."""
    if not isinstance(branch, ast.If) or branch.orelse or source.parent(branch) is not source.forward:
        return False
    quiet = says_all_names(source) and not has_special_methods(source) and not source.swallows_errors
    return (
        quiet
        and asks_plainly(source, branch.test)
        and _only_returns(source, branch)
        and all(_checks(source, statement) for statement in branch.body)
    )


def _only_returns(source: PythonSource, branch: ast.If) -> bool:
    match [*source.after(branch)]:
        case [ast.Return(value=ast.Name())]:
            return True
    return False


def _checks(source: PythonSource, statement: ast.AST, inside: bool = False) -> bool:
    """Whether a statement raises an error by what it looks at, itself or in a function of the file's."""
    match statement:
        case ast.If():
            return ends_with_an_error(source, statement) and _looks(source, statement)
        case ast.Assert(test=test, msg=message):
            return _looks(source, test) and (message is None or _looks(source, message))
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=function) as call) if source.dotted(function) == _ASSERTS:
            return _looks(source, call)
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=given, keywords=[])) if not inside:
            helper = _helper(source, name)
            plain = all(isinstance(each, ast.Name) for each in given)
            return helper is not None and plain and all(_checks(source, each, inside=True) for each in helper.body)
    return False


def _helper(source: PythonSource, name: str) -> ast.FunctionDef | None:
    """The only thing of this name: a function of the file."""
    match source.definitions(name):
        case [ast.FunctionDef() as helper] if helper in source.tree.body and not helper.decorator_list:
            other = source.values(name) or name in source.aliases.keys() | source.parameters
            return None if other or parameter_defaults(helper) else helper
    return None


def _looks(source: PythonSource, whole: ast.AST) -> bool:
    """Whether nothing in a statement or an expression can change a tensor, or run other code of the file's than errors."""
    return all(_looks_itself(source, node) for node in ast.walk(whole))


def _looks_itself(source: PythonSource, node: ast.AST) -> bool:
    match node:
        case ast.Name() | ast.Attribute() | ast.Subscript() if not isinstance(node.ctx, ast.Load):
            return False
        case ast.Attribute(attr=name):
            return not (name.endswith("_") or source.definitions(name) or source.values(name))
        case ast.Call(func=function, args=given, keywords=named):
            plain = all(keyword.arg in _NAMED for keyword in named)
            return plain and (_is_known(source, function, len(given)) or _is_an_error(source, function))
    return isinstance(node, _SPELT)


def _is_known(source: PythonSource, function: ast.expr, given: int) -> bool:
    """Whether it is one of the functions and methods that change nothing."""
    name = source.dotted(function) or ""
    if name in _LOOKS or name == _ASSERTS:
        return True
    if name.startswith("torch.nn.functional.") and names_computation(source, function):
        return given == 1 and not name.endswith("_")  # a second argument may mean `inplace`
    match function:
        case ast.Name(id=name):
            return name in _OF_PYTHON and not (source.definitions(name) or source.values(name))
        case ast.Attribute(attr=name):
            return name in _METHODS and not source.definitions(name) and not given
    return False


def _is_an_error(source: PythonSource, function: ast.expr) -> bool:
    """Whether it makes an error of Python's, or one of the file's that is nothing but such."""
    name = identifier_of(function) or ""
    made = source.definitions(name)
    bases = [base for each in made if isinstance(each, ast.ClassDef) and _is_bare(each) for base in each.bases]
    names = [identifier_of(base) or "" for base in bases] if made else [name]
    return len(bases) == len(made) and not source.values(name) and all(map(_is_pythons_error, names))


def _is_bare(made: ast.ClassDef) -> bool:
    empty = all(
        isinstance(part, ast.Pass) or isinstance(getattr(part, "value", None), ast.Constant) for part in made.body
    )
    return empty and not made.decorator_list and not made.keywords


def _is_pythons_error(name: str) -> bool:
    kind = vars(builtins).get(name)
    return isinstance(kind, type) and issubclass(kind, Exception)
