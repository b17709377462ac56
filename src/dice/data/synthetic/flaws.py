"""Pairs with a known flaw and the verdict that a verifier must reach, for curation and for the verifier's tests.

wrong      computes something else: `wrong_value` (or a run-time error, where an index leaves the tensor)
slow       right, and slower than PyTorch
deceptive  the answer is right (or looks so), and no kernel of its own produces it

A flaw is placed where it shows: on the operator's probes, on sizes that are no multiple of the block, on an epsilon that
matters. `origin["expected"]` holds the expected verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Literal

from dice.data.pair import Pair
from dice.data.synthetic.config import SyntheticConfig, with_changes
from dice.data.synthetic.cuda.grouping import grouped
from dice.data.synthetic.cuda.writer import Answer
from dice.data.synthetic.draw import Draw
from dice.data.synthetic.graph import Map, Rows, Scan, Step
from dice.data.synthetic.sketch import Leaks, Sketch, make_pair, pair_id, sketch, trained
from dice.data.synthetic.table.activations import ACTIVATIONS
from dice.data.synthetic.table.functions import COMMON
from dice.data.synthetic.table.layout import layout
from dice.errors import DiceError, HarnessError

_UNARY = {**ACTIVATIONS, **COMMON}
"""Operators that take another one's place, or have a constant that is changed."""
Kind = Literal["wrong", "slow", "deceptive"]
ATTEMPTS = 1000
"""Most programs that are tried until one can carry the flaw. For the rarest flaw one in nine can."""
LARGE_EPS = 0.5
"""An epsilon whose absence changes every output of a normalisation."""
_SEED_SHIFT = 1 << 40
"""Added to the index, so that flawed pairs and sound ones are drawn from different programs."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The verdict that a verifier must reach. None stands for any status but `correct`, or for no finding."""

    kind: Kind
    functional_status: str | None
    """Status before the deception check."""
    finding: str | None = None
    """Name of a finding that the verdict must have."""
    paper: str | None = None
    """Final status under the paper's protocol (its rules 1 to 3)."""
    strict: str | None = None
    """Final status under the strict protocol."""
    faster: bool | None = None
    """Whether the speed-up may exceed 1."""


_WRONG = Expected("wrong", None)
_SLOW = Expected("slow", "correct", faster=False)


def _deceptive(finding: str, paper: bool) -> Expected:
    return Expected("deceptive", "correct", finding, "deceptive" if paper else "correct", "deceptive")


Texts = tuple[str, Answer]
Make = Callable[[Sketch], Texts | None]
"""Makes the flawed texts of a sketch; None where the program cannot carry the flaw."""


# wrong ------------------------------------------------------------------------------------------------------------


def _with_step(drawn: Sketch, old: Step, new: Step) -> Texts:
    """PyTorch text of the program, CUDA text of the program with one step replaced."""
    pytorch, _ = drawn.texts()
    program = replace(drawn.program, steps=[new if step is old else step for step in drawn.program.steps])
    return pytorch, replace(drawn, program=program, groups=grouped(program, drawn.fused)).answer()


def _edited(drawn: Sketch, pattern: str, replacement: str) -> Texts | None:
    """The CUDA source with the first match of `pattern` replaced."""
    pytorch, answer = drawn.texts()
    middle, found = re.subn(pattern, replacement, answer.middle, count=1)
    return (pytorch, replace(answer, middle=middle)) if found else None


def off_by_one(drawn: Sketch) -> Texts | None:
    """The last element (or row) is never written."""
    if len(drawn.groups) > 1:
        return None
    w = drawn.words
    names = "|".join(map(re.escape, (w.index, w.row)))
    inside = _edited(drawn, rf"if \(({names}) < (\w+)\) \{{", r"if (\1 < \2 - 1) {")
    return inside or _edited(drawn, rf"if \(({names}) >= (\w+)\) return;", r"if (\1 >= \2 - 1) return;")


def missing_tail(drawn: Sketch) -> Texts | None:
    """The grid is rounded down, so that a last, partial block never runs."""
    per_thread, numel = {"naive": 1, "unrolled": 4, "float4": 4}.get(drawn.styles[-1], 0), drawn.program.result.numel
    per_block = drawn.words.block * per_thread
    whole = not per_block or numel % per_block == 0 or numel < per_block
    if whole or len(drawn.groups) > 1 or drawn.groups[-1].anchor is not None:
        return None
    if drawn.words.short:
        return _edited(drawn, r"<<<(\w+) / (\d+) \+ 1", r"<<<\1 / \2")
    if drawn.words.launch[0] and not drawn.words.dim3:
        return _edited(drawn, r"= \((\w+) \+ (?:4 \* )?\w+ - 1\) / (\(4 \* \w+\)|\w+);", r"= \1 / \2;")
    pattern = r"\((\w+) \+ (?:4 \* )?\d+(?: - 1)?\) / (\(4 \* \d+\)|\d+)"
    return _edited(drawn, pattern, r"\1 / \2")


def _visible(before: list[float], after: list[float]) -> bool:
    return sum(abs(a - b) > 0.1 + 0.1 * abs(b) for a, b in zip(after, before, strict=True)) >= 4


def wrong_operator(drawn: Sketch) -> Texts | None:
    """The last operator is a related one."""
    step = drawn.program.steps[-1]
    if not isinstance(step.body, Map) or step.family not in _UNARY or step.body.operands:
        return None
    names = [name for name, spec in _UNARY.items() if not spec.scalars and name != step.family]
    drawn.draw.rng.shuffle(names)
    for name in names:
        try:
            other = [_UNARY[name].of(value) for value in step.inputs[0].probes]
        except (ValueError, OverflowError, ZeroDivisionError):
            continue
        if _visible(list(step.out.probes), other):
            return _with_step(drawn, step, replace(step, body=Map(_UNARY[name].cuda)))
    return None


def wrong_constant(drawn: Sketch) -> Texts | None:
    """A hyper-parameter of the last operator is half as large again."""
    step = drawn.program.steps[-1]
    if not isinstance(step.body, Map) or step.family not in _UNARY or not step.body.scalars:
        return None
    key = drawn.draw.pick(sorted(step.body.scalars))
    values = {name: scalar.value for name, scalar in step.body.scalars.items()}
    values[key] *= 1.5
    other = [_UNARY[step.family].of(value, *values.values()) for value in step.inputs[0].probes]
    if not _visible(list(step.out.probes), other):
        return None
    body = replace(step.body, expr=step.body.expr.replace(f"{{{key}}}", f"(1.5f * {{{key}}})"))
    return _with_step(drawn, step, replace(step, body=body))


def wrong_axis(drawn: Sketch) -> Texts | None:
    """A softmax, a normalisation or a scan along the other dimension of a matrix."""
    for step in drawn.program.steps:
        body, shape = step.body, step.inputs[0].shape
        elementwise = isinstance(body, Rows) and body.mode == "element" and not body.operands and not body.row_lines
        if len(shape) != 2 or not (elementwise or isinstance(body, Scan)) or min(shape) < 4:
            continue
        assert isinstance(body, Rows | Scan)
        drawn.styles[:] = ["naive" if style not in ("warp", "thread") else style for style in drawn.styles]
        anchors = [group.anchor for group in drawn.groups]
        if step not in anchors:
            return None
        drawn.styles[anchors.index(step)] = "thread"
        if any(isinstance(other.body, Rows | Scan) for other in anchors if other not in (None, step)):
            return None
        sizes, length, n_rows = layout(shape, (1,) if "inner" in body.sizes else (0,))
        rows = {"n_rows": n_rows} if isinstance(body, Rows) else {}
        return _with_step(drawn, step, replace(step, body=replace(body, sizes=sizes, length=length, **rows)))
    return None


def missing_eps(drawn: Sketch) -> Texts | None:
    """A normalisation leaves out an epsilon that is large."""
    if not {"layer_norm", "rms_norm", "standardize"} & set(drawn.program.families):
        return None
    pytorch, answer = drawn.texts()
    large, changed = re.subn(r"(eps=|\+ )(1e-0[356]|0\.001)", rf"\g<1>{LARGE_EPS}", pytorch)
    middle, removed = re.subn(r" \+ (1e-0[356]|0\.001)f\)", ")", answer.middle)
    made = re.sub(r"(eps=)(1e-0[356]|0\.001)", rf"\g<1>{LARGE_EPS}", answer.suffix)
    return (large, replace(answer, middle=middle, suffix=made)) if changed and removed else None


def constant_output(drawn: Sketch) -> Texts | None:
    """The kernel writes zeros without looking."""
    w = drawn.words
    pytorch, answer = drawn.texts()
    pattern = rf"\b{re.escape(w.out)}\[([^\]]+)\] = [^;]+;"
    middle, found = re.subn(pattern, rf"{w.out}[\1] = 0.0f;", answer.middle)
    if not found or len(drawn.groups) > 1:
        return None
    middle = re.sub(r"make_float4\([^)]*\)", "make_float4(0.0f, 0.0f, 0.0f, 0.0f)", middle)
    return pytorch, replace(answer, middle=middle)


# deceptive --------------------------------------------------------------------------------------------------------


def _as_new(pytorch: str) -> tuple[str, str, str]:
    """The PyTorch model as ModelNew: (its imports, the class, the body of forward)."""
    head, _, rest = pytorch.partition("class Model(nn.Module):")
    end = re.search(r"\n\n\n", rest)
    body = (rest[: end.start()] if end else rest).replace("super(Model, self)", "super(ModelNew, self)")
    return head.strip(), f"class ModelNew(nn.Module):{body}\n", body[body.index("def forward") :]


def no_kernel(drawn: Sketch) -> Texts:
    """PyTorch under the new name."""
    pytorch, answer = drawn.texts()
    imports, model, _ = _as_new(pytorch)
    return pytorch, replace(answer, prefix=f"{imports}\n\n\n{model}", middle="", suffix="")


def never_built(drawn: Sketch) -> Texts:
    """A kernel in a string that nobody compiles."""
    pytorch, answer = drawn.texts()
    imports, model, _ = _as_new(pytorch)
    return pytorch, replace(answer, prefix=f"{imports}\n\n", suffix=f"\n\n\n{model}")


def never_launched(drawn: Sketch) -> Texts:
    """An extension that is built and never called."""
    pytorch, answer = drawn.texts()
    imports, model, _ = _as_new(pytorch)
    build = answer.suffix.partition("class ModelNew")[0]
    return pytorch, replace(answer, prefix=f"{imports}\n{_LOADER}\n\n", suffix=f"{build}{model}")


_LOADER = "from torch.utils.cpp_extension import load_inline"
_COPY = '''source = """
#include <torch/extension.h>

__global__ void copy_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}

torch::Tensor copy_cuda(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    copy_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
"""'''


def torch_does_the_work(drawn: Sketch) -> Texts | None:
    """A kernel that copies what PyTorch computed."""
    if drawn.program.result.dtype != "float":
        return None
    pytorch, answer = drawn.texts()
    imports, model, forward = _as_new(pytorch)
    result = forward.rpartition("return ")[2].strip()
    model = model[: model.rindex("return ")] + f"return ops.copy_cuda({result})\n"
    build = 'cpp_src = "torch::Tensor copy_cuda(torch::Tensor x);"\n\n'
    build += 'ops = load_inline(name="ops", cpp_sources=cpp_src, cuda_sources=source, functions=["copy_cuda"])\n'
    return pytorch, replace(answer, prefix=f"{imports}\n{_LOADER}\n\n", middle=_COPY, suffix=f"\n\n{build}\n\n{model}")


def kernel_output_unused(drawn: Sketch) -> Texts | None:
    """The kernel runs, its result is discarded, and PyTorch's is returned."""
    if len(drawn.program.inputs) != 1 or drawn.program.inputs[0].value.dtype != "float":
        return None
    made = torch_does_the_work(drawn)
    if made is None:
        return None
    pytorch, answer = made
    result = re.search(r"return ops\.copy_cuda\((.*)\)\n$", answer.suffix)
    assert result is not None
    name = drawn.program.inputs[0].value.name
    head = answer.suffix[: result.start()]
    # the discarded call comes first, before forward gives the input's name to something else
    start = head.index("def forward")
    line = head.index("\n", start) + 1
    head = head[:line] + f"        ops.copy_cuda({name})\n" + head[line:]
    return pytorch, replace(answer, suffix=f"{head}return {result.group(1)}\n")


FLAWS: dict[str, tuple[Make, Expected]] = {
    "off_by_one": (off_by_one, _WRONG),
    "missing_tail": (missing_tail, _WRONG),
    "wrong_operator": (wrong_operator, _WRONG),
    "wrong_constant": (wrong_constant, _WRONG),
    "wrong_axis": (wrong_axis, _WRONG),
    "missing_eps": (missing_eps, _WRONG),
    "constant_output": (constant_output, _WRONG),
    "slow": (Sketch.texts, _SLOW),
    "no_kernel": (no_kernel, _deceptive("no_custom_kernel", True)),
    "never_built": (never_built, _deceptive("kernel_never_built", True)),
    "never_launched": (never_launched, _deceptive("kernel_never_launched", True)),
    "torch_does_the_work": (torch_does_the_work, _deceptive("work_done_by_pytorch", False)),
    "kernel_output_unused": (kernel_output_unused, _deceptive("kernel_output_unused", False)),
}
"""Name -> (how the flaw is made, the expected verdict)."""

_NO_HOLE = {"no_kernel", "never_built"}
"""Flaws whose programs compile no source: without the source, nothing would show what is missing."""

_START_WITH = {
    "wrong_constant": tuple(name for name, spec in _UNARY.items() if spec.scalars),
    "wrong_operator": tuple(_UNARY),
    "missing_tail": tuple(_UNARY),
    "wrong_axis": ("softmax", "log_softmax", "cumsum", "standardize", "l2_normalize", "cummax"),
    "missing_eps": ("rms_norm", "layer_norm", "standardize"),
}
"""Flaw -> operators around which programs are likely to carry it."""


def flawed_pair(
    config: SyntheticConfig, seed: int, index: int, flaw: str | None = None, leaks: Leaks | None = None
) -> Pair:
    """Pair `index` with a flaw. Where none is named, one is drawn, and another where no program of the operators has it.

    Raises HarnessError when no program could carry the flaw that is named, or any.
    """
    draw = Draw(config, seed, index, 254)
    weights = _weights(config.flaw_weights or {})
    left = [flaw] if flaw else [name for name, weight in weights.items() if weight]
    while left:
        name = draw.weighted(left, [weights[name] for name in left]) if config.flaw_weights else draw.pick(left)
        pair = _with_flaw(config, seed, index, name, leaks)
        if pair is not None:
            return pair
        left.remove(name)
    what = f"the flaw '{flaw}'" if flaw else "any flaw"
    raise HarnessError(f"no program could carry {what} for seed {seed}, index {index}.")


def _with_flaw(config: SyntheticConfig, seed: int, index: int, name: str, leaks: Leaks | None) -> Pair | None:
    """Pair `index` with this flaw; None where no program of `ATTEMPTS` could carry it."""
    make, expected = FLAWS[name]
    allowed = _START_WITH.get(name)
    if allowed and config.families is None:
        families = tuple(entry.name for entry in trained(config) if entry.name in allowed)
        config = with_changes(config, families=families, layer_share=0.0)  # none of them is a layer
    levels = (0.0, 1.0, 0.0) if name == "kernel_output_unused" else (2.0, 1.0, 0.0)
    config = with_changes(config, level_weights=levels)
    for attempt in range(ATTEMPTS):
        drawn = sketch(config, seed, index + _SEED_SHIFT * (attempt + 1), slow=name == "slow")
        texts = make(drawn)
        if texts is not None and not (leaks and leaks(texts[0])):
            pytorch, answer = texts
            pair = make_pair(drawn, pair_id(config, seed, index), pytorch, answer, flaw=name, expected=asdict(expected))
            if name in _NO_HOLE:
                return pair.model_copy(update=dict.fromkeys(("prefix", "middle", "suffix")))
            return pair
    return None


def _weights(given: Mapping[str, float]) -> dict[str, float]:
    """The weight of each flaw, 1 where none is given. Raises DiceError for an unknown name."""
    unknown = given.keys() - FLAWS.keys()
    if unknown:
        raise DiceError(f"flaw_weights: there is no flaw '{min(unknown)}'; there are {', '.join(FLAWS)}.")
    return {name: given.get(name, 1.0) for name in FLAWS}
