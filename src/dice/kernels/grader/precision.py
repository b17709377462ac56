"""Whether a candidate computes in a type narrower than fp32, whatever it calls the type.

Inputs, or weights, get values of eight significant bits, then the same with something in the fourteenth and fifteenth:
bfloat16, half precision and TF32 round both to one number. By fp64 the second call's outputs are a little different, and the
reference's are. A candidate is caught whose outputs are not, in most elements that tell. Where the reference does not
follow either (it is narrow too, or its rounding hides the change), or few elements tell, nothing is said.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from dice.errors import DiceError
from dice.kernels.candidate.other_values import coarse, refined, varied
from dice.kernels.compare import compare_outputs
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.other_weights import changed_weights
from dice.kernels.grader.reference import to_device
from dice.kernels.grader.usage import is_large
from dice.kernels.records.evidence import ExperimentName, ExperimentResult
from dice.kernels.rounding_tolerance import unit
from dice.kernels.sandbox.session import CandidateRaised

_FEWEST = 6
"""Elements that must tell something; calls of a problem with a single output, where each shows nothing."""
_MOST = 1 << 20
"""Elements of an output that are looked at."""
_FOLLOWS = 8.0
"""The reference is this much nearer to the exact change than the change is large; a candidate that shows less than this part
of the change does not follow."""
_SHARE = 0.75
"""Of the elements that tell something: caught if so many do not follow."""
_MOST_BYTES = 256 << 20
"""Of inputs, weights and outputs: in fp64 they take twice as much, beside what the card was asked for."""
_UNIT = unit(torch.float32)


@dataclass(frozen=True)
class _Called:
    """Outputs of one call, [elements] in fp64 on one device: the reference's, the same from fp64 values, the candidate's."""

    expected: torch.Tensor
    exact: torch.Tensor
    actual: torch.Tensor


def experiment_precision(run: CandidateRun) -> None:
    """Adds a result for the inputs and one for the weights, where the reference shows a difference."""
    sizes = run.reference.sizes
    if run.last is None or sizes.inputs + sizes.weights + sizes.outputs > _MOST_BYTES:
        return
    with run.record.phase("experiments"):
        _ask(run, "fine_inputs", _with_fine_inputs)
        if not is_large(run.reference.model(run.weights_seed)):
            _ask(run, "fine_weights", _with_fine_weights)
            run.make_model(run.weights_seed)


def _ask(
    run: CandidateRun, name: ExperimentName, pair: Callable[[CandidateRun], tuple[_Called, _Called] | None]
) -> None:
    followed = torch.empty(0, dtype=torch.bool)
    with contextlib.suppress(CandidateRaised, DiceError):
        for _ in range(_FEWEST):
            called = pair(run)
            if called is None or len(called[0].exact) != len(called[1].exact):  # as many elements as the values say
                return
            followed = torch.cat([followed, _followed(*called).cpu()])
            if followed.any() or followed.numel() >= _FEWEST or not _may_tell(called[0]):
                break
    if followed.any() or followed.numel() >= _FEWEST:
        stale = float((~followed).double().mean())
        outcome = "stale" if stale >= _SHARE and followed.numel() >= _FEWEST else "right"
        run.evidence.experiments.append(
            ExperimentResult(name=name, outcome=outcome, detail=f"{stale:.0%} of the elements")
        )


def _may_tell(called: _Called) -> bool:
    """Whether a few more calls may give enough elements."""
    return 0 < called.expected.numel() < _FEWEST


def _followed(before: _Called, after: _Called) -> torch.Tensor:
    """Of the elements where the reference follows the exact change, whether the candidate does."""
    exact = after.exact - before.exact
    size = torch.maximum(after.exact.abs(), before.exact.abs())
    error = (after.expected - before.expected - exact).abs()
    tells = (exact.abs() >= _FOLLOWS * _UNIT * size) & (error * _FOLLOWS <= exact.abs()) & (exact != 0)
    shown = (after.actual - before.actual) * exact.sign()
    return (shown * _FOLLOWS > exact.abs())[tells]


def _with_fine_inputs(run: CandidateRun) -> tuple[_Called, _Called] | None:
    drawn, seed = run.draw_inputs(secrets.randbits(48)), secrets.randbits(48)
    if not any(_is_fp32(leaf) for leaf in tree_leaves(drawn)):
        return None
    first = [tree_map(lambda leaf: coarse(leaf) if _is_fp32(leaf) else leaf, each) for each in drawn]
    finer = [
        tree_map(lambda leaf: refined(leaf, secrets.randbits(48)) if _is_fp32(leaf) else leaf, each) for each in drawn
    ]
    model = run.reference.model(run.weights_seed)
    return _both(_called(run, model, first, seed), lambda: _called(run, model, finer, seed))


def _with_fine_weights(run: CandidateRun) -> tuple[_Called, _Called] | None:
    """Around other values than those that the candidate was made with: nothing is said of one that keeps those."""
    assert run.last is not None
    model = run.reference.model(run.weights_seed)
    own = {name: varied(value, secrets.randbits(48)) for name, value in model.state_dict().items() if _is_fp32(value)}
    if not own:
        return None
    inputs, seed = run.draw_inputs(secrets.randbits(48)), secrets.randbits(48)

    def with_weights(values: dict[str, torch.Tensor]) -> _Called | None:
        with changed_weights(model, values) as state:
            kept = {name: value.clone() for name, value in state.items()}
            return _called(run, model, inputs, seed) if run.construct_with(kept) else None

    old = run.reference.run(model, to_device(inputs, run.place.device), seed)
    first = with_weights({name: coarse(value) for name, value in own.items()})
    if first is not None and not _is_new(first, _sample(old, _fp32(old), run.place.device)):
        return None
    return _both(
        first, lambda: with_weights({name: refined(value, secrets.randbits(48)) for name, value in own.items()})
    )


def _is_new(called: _Called, old: torch.Tensor) -> bool:
    """Whether the candidate's outputs are much nearer to the right ones than to the `old` weights' are."""
    return bool((called.actual - called.expected).norm() * _FOLLOWS < (old - called.expected).norm())


def _both(first: _Called | None, second: Callable[[], _Called | None]) -> tuple[_Called, _Called] | None:
    other = second() if first is not None else None
    return None if first is None or other is None else (first, other)


def _called(run: CandidateRun, model: torch.nn.Module, inputs: list[Any], seed: int) -> _Called | None:
    """None where the candidate's output is wrong or has no fp32, or the values say how many elements there are and fp64 says
    something else."""
    run.send("inputs", inputs)
    device = run.place.device
    expected = run.reference.run(model, to_device(inputs, device), seed)
    actual = run.fetch(run.forward(seed), expected)
    if not compare_outputs(expected, actual, "paper").ok:
        return None
    wide = run.reference.run_wide(run.weights_seed, inputs, seed)
    chosen = _fp32(expected)
    if not chosen:
        return None
    samples = [_sample(each, chosen, device) for each in (expected, wide, actual)]
    return _Called(*samples) if len({*map(len, samples)}) == 1 else None


def _fp32(outputs: Any) -> list[int]:
    """Which outputs are fp32 and not empty."""
    return [index for index, leaf in enumerate(tree_leaves(outputs)) if _is_fp32(leaf) and leaf.numel()]


def _sample(outputs: Any, chosen: list[int], device: torch.device) -> torch.Tensor:
    leaves = tree_leaves(outputs)
    # `paper` takes a number for a tensor
    flat = [torch.as_tensor(leaves[index]).detach().to(device).reshape(-1) for index in chosen]
    return torch.cat([torch.empty(0, device=device), *(leaf[:: -(-leaf.numel() // _MOST)] for leaf in flat)]).double()


def _is_fp32(value: Any) -> bool:
    return torch.is_tensor(value) and value.dtype == torch.float32
