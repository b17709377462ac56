"""The steps that each kernel computes, and the style in which the kernel is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from dice.data.synthetic.cuda import contract, element, rows, total
from dice.data.synthetic.cuda.scope import Function, Scope
from dice.data.synthetic.draw import Draw, Words
from dice.data.synthetic.graph import Arg, Contract, Element, Map, Program, Rows, Scan, Step, Total, Value


@dataclass(slots=True)
class Group:
    """Steps of one kernel: element-wise ones before an anchor, the anchor, element-wise ones after it."""

    source: Value
    before: list[Step] = field(default_factory=list)
    anchor: Step | None = None
    after: list[Step] = field(default_factory=list)

    @property
    def steps(self) -> list[Step]:
        return [*self.before, *([self.anchor] if self.anchor else []), *self.after]

    @property
    def kind(self) -> type:
        """Of the anchor's body."""
        return type(self.anchor.body) if self.anchor else Map

    @property
    def out(self) -> Value:
        return self.steps[-1].out

    @property
    def label(self) -> str:
        """Name made of the operators, four at most."""
        return "_".join([step.family for step in self.steps][:4])


SLOW_LIMIT = 1_000_000
"""Most elements that a single warp has to add up: it must be slow, but not take minutes."""
_TAKES_BEFORE = (Rows, Scan, Total)
"""Bodies that can apply element-wise operators to the elements that they read."""


def grouped(program: Program, fused: bool) -> list[Group]:
    """Groups in a possible execution order. Not fused: one kernel per operator."""
    uses = Counter(value for step in program.steps for value in step.inputs)
    groups: list[Group] = []
    for step in program.steps:
        open_group = groups[-1] if groups else None
        follows = fused and open_group and step.inputs[0] is open_group.out and uses[open_group.out] == 1
        if not open_group or not follows or not _takes(open_group, step):
            open_group = Group(step.inputs[0])
            groups.append(open_group)
        if not isinstance(step.body, Map):
            open_group.anchor = step
        else:
            (open_group.after if open_group.anchor else open_group.before).append(step)
    return groups


def _takes(group: Group, step: Step) -> bool:
    if not isinstance(step.body, Map):
        return group.anchor is None and isinstance(step.body, _TAKES_BEFORE)
    if group.anchor is None:
        return True
    body = group.anchor.body
    return not isinstance(body, Arg) and not (isinstance(body, Rows) and body.mode == "total")


def styles_of(group: Group, slow: bool) -> tuple[str, ...]:
    """Styles in which the group can be written; `slow`: the deliberately bad ones."""
    body = group.anchor.body if group.anchor else None
    if body is None:
        if slow:
            return element.SLOW_STYLES
        floats = group.source.dtype == group.out.dtype == "float"
        return tuple(style for style in element.MAP_STYLES if floats or style != "float4")
    if isinstance(body, Element):
        if slow:  # one block would need minutes for a window
            return ("chunked",) if any("for (" in line for line in body.lines) else element.SLOW_STYLES
        more = ("tiled", "tiled") if body.transposes else ()
        more += ("shared_weights",) if body.conv and body.conv.n_weights <= rows.MAX_CACHED else ()
        return element.ELEMENT_STYLES + more
    if isinstance(body, Contract):
        return contract.SLOW_STYLES if slow else contract.CONTRACT_STYLES
    if isinstance(body, Total):
        if slow:
            return total.SLOW_STYLES if group.source.numel < SLOW_LIMIT else ("one_block",)
        return total.TOTAL_STYLES
    if slow:
        return rows.SLOW_STYLES
    if isinstance(body, Scan):
        return tuple(style for style in rows.SCAN_STYLES if style != "block" or body.length <= 1024)
    if isinstance(body, Arg):
        return rows.ARG_STYLES
    assert isinstance(body, Rows)
    short = body.length <= 64
    unfit = {
        "cached": short or body.length > rows.MAX_CACHED,
        "block": short,
        "shared": short,
        "thread": body.length > 2048 and body.n_rows < 4096,
        "warp": body.length > 32768,
    }
    return tuple(style for style in rows.ROW_STYLES if not unfit[style])


KINDS: dict[type, tuple[Callable[..., Function], tuple[str, str]]] = {
    Map: (element.lower_maps, ("naive", "naive")),
    Element: (element.lower_element, ("naive", "naive")),
    Contract: (contract.lower_contract, ("naive", "naive")),
    Total: (total.lower_total, ("one_thread", "atomic")),
    Rows: (rows.lower_rows, ("thread", "warp")),
    Scan: (rows.lower_scan, ("thread", "thread")),
    Arg: (rows.lower_arg, ("thread", "thread")),
}
"""What lowers a kind of body, and its plain styles: for small shapes, and for any, where a single thread would take seconds
for a long row, and lose what it adds."""


def lower(group: Group, style: str, words: Words, label: str) -> Function:
    """Kernel and host function of a group."""
    before, after = ([step.body for step in steps] for steps in (group.before, group.after))
    scope = Scope(words, label, out_dtype=group.out.dtype)
    return KINDS[group.kind][0](group.anchor and group.anchor.body, before, after, group.source, style, scope)


def choose_style(group: Group, d: Draw, slow: bool) -> str:
    """A style that suits the group's shape."""
    if d.plain and not slow:
        return KINDS[group.kind][1][not d.tiny]
    return d.pick(styles_of(group, slow))
