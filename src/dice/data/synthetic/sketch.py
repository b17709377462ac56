"""A pair before and after printing: the program, the way it will be written, and the finished row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from dice.data.pair import Pair
from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.config import SyntheticConfig
from dice.data.synthetic.cuda.grouping import Group, choose_style, grouped
from dice.data.synthetic.cuda.writer import Answer, lower_program, write_answer
from dice.data.synthetic.draw import Draw, Words, draw_words
from dice.data.synthetic.graph import Program, Value
from dice.data.synthetic.table import TINY, Entry, known
from dice.data.synthetic.torch_writer import write_model
from dice.errors import DiceError, HarnessError

Leaks = Callable[[str], bool]
"""Whether a PyTorch program must not be in the data, for example because it is a benchmark problem."""
ATTEMPTS = 200
"""Most programs that are drawn for one index; in practice a few are enough."""
MAX_STEPS = 5
"""Most operators of a level-2 program."""
_FUSED_SHARE = 0.75
"""Share of programs whose element-wise operators are fused into the kernels beside them (nano scale)."""
_SLOW_SHARE = 0.12
"""Share of sound pairs that are written in a deliberately slow style (nano scale)."""


@dataclass(slots=True)
class Sketch:
    """Everything that is decided about a pair before its texts are printed."""

    draw: Draw
    program: Program
    groups: list[Group]
    styles: list[str]
    words: Words
    fused: bool
    slow: bool
    attempt: int

    def answer(self) -> Answer:
        """The CUDA program."""
        return write_answer(self.program, lower_program(self.groups, self.styles, self.words, self.draw), self.words)

    def texts(self) -> tuple[str, Answer]:
        """Both programs, printed."""
        answer = self.answer()
        return write_model(self.program, self.draw, self.words), answer


@lru_cache(maxsize=64)
def _pools(config: SyntheticConfig) -> dict[str, tuple[Entry, ...]]:
    """Entries that start programs of each level, and those that may follow in a chain."""
    table, visible = known(), trained(config)
    for name in config.families or ():
        if name not in table:
            raise DiceError(f"families: no operator is called '{name}' (known: {', '.join(sorted(table))}).")
    chosen = visible
    if config.families is not None:
        chosen = tuple(table[name] for name in config.families)
    tests = {
        "maps": lambda entry: entry.group in ("pointwise", "binary"),
        "pointwise": lambda entry: entry.group == "pointwise",
        "truths": lambda entry: entry.name in ("any", "all", "count_nonzero"),
        "casts": lambda entry: entry.name == "to_float",
        "number": lambda entry: entry.name in _FOR_NUMBERS,
        "second": lambda entry: entry.group in _SECOND and not entry.weak,
    }
    return {
        "single": tuple(entry for entry in chosen if entry.group != "architecture"),
        "layers": tuple(entry for entry in chosen if entry.layer),
        "architecture": tuple(entry for entry in chosen if entry.group == "architecture"),
        **{name: tuple(filter(test, visible)) for name, test in tests.items()},
    }


_SECOND = ("reduce", "norm", "scan", "move", "window", "gate")
"""Groups of operators that may follow an anchor."""


def trained(config: SyntheticConfig) -> tuple[Entry, ...]:
    """What programs are drawn from unless operators are named."""
    table = known()
    if config.scale == "tiny":
        return tuple(table[name] for name in TINY)
    return tuple(entry for entry in table.values() if not entry.held_out)


_FOR_NUMBERS = ("scale", "shift", "affine", "divide", "reversed_sub", "neg", "log1p_abs", "sqrt_abs", "asinh")
"""Operators for a single number, which others would soon turn into a constant."""
_WEIGHTS = {"pointwise": 0.5, "binary": 1.0, "reduce": 1.4, "norm": 1.5, "scan": 1.2, "contract": 1.5, "window": 1.5}
_CHAIN_WEIGHTS = {"pointwise": 0.55, "binary": 0.5, "move": 0.4, "loss": 0.4, "contract": 2.0, "norm": 2.0}
_LAYER_WEIGHTS = {2: 8.0, 3: 0.4, 4: 1.0, 5: 2.5}
"""Rank of its input -> weight of a layer. Linear layers are one entry; convolutions of images eight, of volumes four."""
_USUAL = (
    "relu", "leaky_relu", "sigmoid", "tanh", "silu", "gelu", "hardtanh", "abs", "scale", "shift", "divide", "add",
    "sub", "mul",
)  # fmt: skip
"""What people write behind a layer: drawn five times as often there as other element-wise operators."""


def _choose(d: Draw, pool: tuple[Entry, ...], weights: dict[str, float]) -> Entry:
    return d.weighted(pool, [weights.get(entry.group, 1.0) for entry in pool])


def sketch(config: SyntheticConfig, seed: int, index: int, slow: bool | None = None, first: int = 0) -> Sketch:
    """Draw the program and the way its kernels are written. `slow` forces or forbids the slow styles.

    `first`: number of the first attempt, for a caller that could not use earlier ones. Raises HarnessError when no
    attempt gives a program.
    """
    for attempt in range(first, ATTEMPTS):
        draw = Draw(config, seed, index, attempt)
        try:
            program = _program(draw)
        except Refused:
            continue
        fused = draw.plain or draw.chance(_FUSED_SHARE)
        words = draw_words(draw)
        is_slow = (not draw.plain and draw.chance(_SLOW_SHARE)) if slow is None else slow
        groups = grouped(program, fused)
        styles = [choose_style(group, draw, is_slow) for group in groups]
        return Sketch(draw, program, groups, styles, words, fused, is_slow, attempt)
    raise HarnessError(f"No program could be drawn for seed {seed}, index {index}; loosen the limits of {config}.")


def _program(draw: Draw) -> Program:
    pools = _pools(draw.config)
    of_level = (pools["single"], pools["single"], pools["architecture"])
    usable = [weight if pool else 0.0 for weight, pool in zip(draw.config.levels, of_level, strict=True)]
    if sum(usable) <= 0:
        raise DiceError("The chosen operators make no program of the levels that have a weight.")
    level = draw.weighted((1, 2, 3), usable)
    builder = Builder(draw)
    if level == 3:
        anchor = draw.pick(pools["architecture"])
        anchor.first(builder)
    elif level == 1:
        anchor = _choose(draw, pools["single"], _WEIGHTS)
        anchor.apply(builder, anchor.first(builder))
    else:
        anchor = _chain(builder, pools)
    return builder.program(level, anchor.name)


def _chain(b: Builder, pools: dict[str, tuple[Entry, ...]]) -> Entry:
    """Element-wise operators around an anchor, perhaps a second anchor, two to five operators in all. Returns the anchor."""
    d = b.draw
    layer_first = bool(d.config.layer_share) and d.chance(d.config.layer_share)
    if layer_first:
        if not pools["layers"]:
            raise DiceError("layer_share: none of the chosen operators is a layer with weights.")
        anchor = d.weighted(pools["layers"], _layer_weights(d.config, pools["layers"]))
        pools = {**pools, "pointwise": _usual_often(pools["pointwise"]), "maps": _usual_often(pools["maps"])}
    else:
        anchor = _choose(d, pools["single"], _CHAIN_WEIGHTS)
    fewest, most = d.config.depth or (2, MAX_STEPS)
    lengths = range(fewest, most + 1) if d.config.depth else (2, 2, 3) if d.tiny else (2, 3, 3, 4, 4, 5)
    length = d.pick(lengths)
    x = anchor.first(b)
    made_for_input = anchor.group in ("pointwise", "binary", "loss") or anchor.weak or anchor.name == "embedding"
    later = anchor.group in ("pointwise", "binary") or (not anchor.weak and d.chance(0.35)) or anchor.group == "reduce"
    if later and not layer_first:
        for _ in range(d.rng.randrange(0, length)):
            x = _map(b, pools, x, few_inputs=made_for_input)
    if b.steps and x.dtype != "float":
        x = _map(b, pools, x, few_inputs=True)
        if x.dtype != "float":
            raise Refused("chain")
    x = anchor.apply(b, x)
    if not anchor.weak and len(b.steps) < most and d.chance(0.5) and not d.tiny:
        second = d.pick(pools["second"] if x.dtype == "float" else pools["truths"])
        if second.name != anchor.name and len(x.shape) in second.ranks and _joins(anchor, second):
            b.axis = None
            x = b.attempt(second.apply, x) or x
    while len(b.steps) < length and (x.dtype == "float" or pools["casts"]):
        before = len(b.steps)
        x = _map(b, pools, x, few_inputs=False)
        if len(b.steps) == before:
            break
    if not fewest <= len(b.steps) <= most or b.result_is_dead():
        raise Refused("chain")
    return anchor


def _layer_weights(config: SyntheticConfig, layers: tuple[Entry, ...]) -> list[float]:
    given = config.layer_weights or {}
    if unknown := set(given) - {entry.name for entry in layers}:
        raise DiceError(f"layer_weights: no layer to draw from is called '{min(unknown)}'.")
    return [given.get(entry.name, _LAYER_WEIGHTS[entry.ranks[0]]) for entry in layers]


def _usual_often(pool: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return pool + tuple(entry for entry in pool if entry.name in _USUAL) * 4


def _joins(first: Entry, second: Entry) -> bool:
    """Whether the result of two anchors depends on both: a reduction right after a normalisation would not."""
    if first.name in ("softmax", "softmin") or second.name == "softmax":
        return second.group == "move" or first.group == "contract" or first.layer
    if first.group == "norm":
        return second.group in ("move", "gate", "window")
    if first.group == "reduce":
        return second.group == "move"
    return not (first.group == second.group == "scan")


def _map(b: Builder, pools: dict[str, tuple[Entry, ...]], x: Value, few_inputs: bool) -> Value:
    """`x` behind one suitable element-wise operator; `x` itself when ten draws do not suit."""
    pool = pools["pointwise"] if few_inputs or b.draw.chance(0.6) else pools["maps"]
    pool = pools["casts"] if x.dtype != "float" else pool if x.shape else pools["number"]
    used = {step.family for step in b.steps}
    for _ in range(10 if pool else 0):
        entry = b.draw.pick(pool)
        if entry.name in used or (x.shape and len(x.shape) not in entry.ranks):
            continue
        out = b.attempt(entry.apply, x)
        if out is not None:
            return out
    return x


def pair_id(config: SyntheticConfig, seed: int, index: int) -> str:
    """`synthetic-nano-7-000012`."""
    return f"synthetic-{config.scale}-{seed}-{index:06d}"


def make_pair(drawn: Sketch, name: str, pytorch: str, answer: Answer, **origin: object) -> Pair:
    """The row of a sketch whose texts are `pytorch` and `answer`."""
    program = drawn.program
    return Pair.model_construct(
        id=name,
        pytorch_code=pytorch,
        cuda_code=answer.code,
        source="synthetic",
        level=program.level,
        measured=None,
        prefix=answer.prefix,
        middle=answer.middle,
        suffix=answer.suffix,
        origin={
            "anchor": program.anchor,
            "families": list(program.families),
            "styles": drawn.styles,
            "fused": drawn.fused,
            "slow": drawn.slow,
            "functions": list(answer.functions),
            **origin,
        },
    )
