"""Names that a problem's module lends to a candidate under `paper`, as KernelBench does.

KernelBench executes the reference and then the candidate in one namespace (src/eval.py, `eval_kernel_against_ref`), so that
a candidate may use the reference's imports, constants and helper functions without defining them. `robust` lends them
too, `strict` nothing. A candidate that uses no such name behaves in the same way with and without, so one run serves
`paper` and `strict`; one that does has a run for each. `robust` always has a run of its own. What KernelBench's
shared namespace also allows, to change what the reference sees, is not imitated.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses

from dice.kernels.records.job import Job, Judging
from dice.kernels.records.verdict import Protocol
from dice.python_scope import Scopes, bound_names
from dice.python_text import parse_python


def runs(job: Job, judging: Judging) -> list[tuple[Judging, list[str] | None]]:
    """The runs that a candidate needs: how each is judged, and the names that it is lent; None: lending is off."""
    names = lent_names(job.code or "", job.problem_code) if judging.lend_names else None
    together: list[tuple[Protocol, ...]] = [("paper",), ("strict",)] if names else [("paper", "strict")]
    found = []
    for group in (*together, ("robust",)):
        own = tuple(protocol for protocol in judging.protocols if protocol in group)
        if own:
            found.append((dataclasses.replace(judging, protocols=own), names if own != ("strict",) else None))
    return found


def lent_names(code: str, reference: str) -> list[str]:
    """Names that `code` uses, that nothing in it binds, and that the top level of `reference` does; sorted."""
    try:
        return sorted(_unbound(parse_python(code)) & bound_names(parse_python(reference).body))
    except SyntaxError:
        return []


def definitions_of(names: list[str], reference: str) -> str:
    """The statements of `reference` that bind `names`, and what these use of it in turn: what a candidate's text leaves
    to the reader who wants to know what the names in it mean."""
    body = parse_python(reference).body
    wanted, taken = set(names), list[ast.stmt]()
    while found := [node for node in body if node not in taken and bound_names([node]) & wanted]:
        taken += found
        wanted |= {node.id for one in found for node in ast.walk(one) if isinstance(node, ast.Name)}
    return "\n".join(ast.unparse(node) for node in body if node in taken)


def _unbound(tree: ast.Module) -> set[str]:
    """Names that are read where no scope around them binds them."""
    scopes, found = Scopes(tree), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            around = scopes.lookup_order(node)
            if not hasattr(builtins, node.id) and not any(node.id in scopes.bindings[scope] for scope in around):
                found.add(node.id)
    return found
