"""Forward with the launch stubs switched off: an answer that is still there was not made by the candidate's kernels.

A candidate may end its process when its kernels do nothing. Then another process runs it with the stubs on, and the memory
that the arguments of its first launch point to is searched instead.
"""

from __future__ import annotations

import secrets
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dice.kernels.checks.workload import is_work
from dice.kernels.compare import chunks
from dice.kernels.grader.candidate_run import NAN_BYTE, CandidateRun
from dice.kernels.grader.reference import to_device
from dice.kernels.likeness import Search, find_outputs
from dice.kernels.likeness.search import larger
from dice.kernels.records.evidence import ExperimentOutcome, ExperimentResult, Form
from dice.kernels.sandbox import values
from dice.kernels.sandbox.leaves import floats_of, tensors_of
from dice.kernels.sandbox.replies import Done, Traces
from dice.kernels.sandbox.session import CandidateFailure, CandidateRaised

FINITE_BYTE = 0x3C
"""Memory full of it is 0.0115 in fp32, 1.06 in half precision: who looks at a kernel's outputs for NaN alone finds none."""
LEAST_SHARE: dict[Form, float] = {
    "equal": 0.51,
    "scaled": 0.8,
    "rearranged": 0.8,
    "transformed": 0.8,
    "combined": 0.9,
}
"""Share of the answer from which on it counts as made without the kernels: most of it. Half of a running sum is PyTorch's
where kernels add up pairs before and fill in the rest."""
_NARROW = (torch.bool, torch.uint8, torch.int8, torch.int16)
"""Whole numbers that no search reads as they stand."""
_AS_WORDS: dict[Form, str] = {
    "equal": "",
    "scaled": ", scaled or shifted",
    "rearranged": ", in another order",
    "transformed": ", as logarithms, differences or the like",
    "combined": ", as a sum of several pieces",
}
_MOVED_FACTOR: frozenset[Form] = frozenset({"scaled", "rearranged"})
"""Forms that say nothing where the reference's last step changes nothing, as a bound that no value reaches. A kernel may then
do that step together with a multiplication that the reference does earlier: before it, memory holds the answer without the
factor. Whether PyTorch did the rest of the work shows in the operators that ran."""


def experiment_without_kernels(run: CandidateRun) -> None:
    """Forward with the launch stubs switched off, then on again.

    Uses other weights, because with a bias of zeros its kernel changes nothing. Uses new inputs, off before on, so that a
    buffer of the candidate cannot hold the answer already. Compares the two outputs closely, because zeros may be within
    a protocol's tolerance of small values. No result when the output for the new inputs equals the output for the old
    ones, equals an input, or has no finite element.
    """
    if not run.evidence.launches or run.last is None:
        return
    inputs, seed, weights = run.draw_inputs(secrets.randbits(48)), secrets.randbits(48), secrets.randbits(48)
    with run.record.phase("experiments"):
        error, without = "", [None]
        try:
            run.ask("jitter", Done, seed=weights)
            without = [_forward_without(run, inputs, seed, byte) for byte in (NAN_BYTE, FINITE_BYTE)]
            outputs, shares = _forward_with(run, inputs, seed)
        except CandidateFailure as failure:
            error = failure.args[0]
            run.end()
            run.revive()
            run.ask("jitter", Done, seed=weights)
            outputs, shares = _forward_with(run, inputs, seed)
        if _nearly_equal(outputs, run.last.expected) or any(_nearly_equal(outputs, x) for x in inputs):
            return
        if _empty(outputs):
            return
        right = any(each is not None and _nearly_equal(outputs, each) for each in without)
        outcome: ExperimentOutcome = "error" if error else "right" if right else "wrong"
        run.evidence.experiments.append(ExperimentResult(name="without_launches", outcome=outcome, detail=error[:200]))
        shares = larger(shares, find_outputs(outputs, _bytes(without[0])))
        run.evidence.experiments.append(_traces(run, inputs, seed, _beyond(shares, _given(outputs, inputs))))


def _forward_with(run: CandidateRun, inputs: list[Any], seed: int) -> tuple[Any, dict[Form, float]]:
    """The outputs with the stubs on, and how much of them stood in memory before, by form."""
    assert run.last is not None
    run.send("inputs", inputs)
    outputs = run.fetch(run.forward(seed, keep=_answer_bytes(run)), run.last.expected)
    with run.not_counted(), run.place.gpu_lent():  # a search on the CPU, for which a timing need not wait
        return outputs, run.ask("answer_traces", Traces).shares


def _answer_bytes(run: CandidateRun) -> int:
    assert run.last is not None
    return max(1, values.lay_out(run.last.expected)[2])


def _forward_without(run: CandidateRun, inputs: list[Any], seed: int, poison: int) -> Any:
    """The outputs with the stubs off; None where forward raises because its kernels did nothing. Copies of what it passed to
    them are kept either way. `poison`: what kernels seem to have written."""
    assert run.last is not None
    run.ask("launching", Done, on=False)
    run.send("inputs", inputs)
    try:
        return run.fetch(run.forward(seed, keep=_answer_bytes(run), poison=poison), run.last.expected)
    except CandidateRaised:
        return None
    finally:
        if run.session.alive:
            run.ask("launching", Done, on=True)


def _given(outputs: Any, inputs: list[Any]) -> float:
    """Share of the answer that is an input: a state that begins with zeros and to which the input is added."""
    leaves = [leaf for leaf in tensors_of(outputs) if leaf.numel()]
    given = [leaf for leaf in leaves if any(_nearly_equal(leaf, each) for each in tensors_of(inputs))]
    return sum(leaf.numel() for leaf in given) / max(1, sum(leaf.numel() for leaf in leaves))


def _beyond(shares: dict[Form, float], given: float) -> dict[Form, float]:
    """Shares of the rest of the answer."""
    return {form: (share - given) / (1 - given) for form, share in shares.items()} if given < 1 else {}


def _traces(run: CandidateRun, inputs: list[Any], seed: int, shares: dict[Form, float]) -> ExperimentResult:
    """The result for the answer's traces: a form counts unless the reference's own steps show it too."""
    found: dict[Form, float] = {form: share for form, share in shares.items() if share >= LEAST_SHARE[form]}
    found = {form: found[form] for form in found.keys() - usual_forms(run, inputs, seed, found)}
    detail = "; ".join(f"{100 * share:.0f} % of the answer{_AS_WORDS[form]}" for form, share in found.items())
    return ExperimentResult(name="answer_traces", outcome="right" if found else "wrong", detail=detail)


def usual_forms(run: CandidateRun, inputs: list[Any], seed: int, shares: dict[Form, float]) -> set[Form]:
    """Those forms of which the reference's own inputs, weights or intermediate results hold at least half of `shares`.

    A product that is rectified afterwards holds all of the answer that is not zero. Who computes the product by PyTorch
    and rectifies it by a kernel has replaced one of two operators, which is allowed.
    """
    if not shares:
        return set()
    model = run.reference.model(run.weights_seed)
    answer = run.reference.run(model, to_device(inputs, run.place.device), seed)
    steps = _Steps(answer, shares)
    for value in (*model.state_dict().values(), *tree_leaves(inputs)):
        steps.look(value)
    with steps:
        run.reference.run(model, to_device(inputs, run.place.device), seed)
    return steps.usual


class _Steps(TorchDispatchMode):
    """Looks for an answer in what each operator returns, where it is not the whole answer already."""

    def __init__(self, answer: Any, shares: dict[Form, float]) -> None:
        super().__init__()
        self._answers = [leaf.detach().cpu() for leaf in tensors_of(answer)]
        self._sizes = [leaf.numel() for leaf in self._answers]
        self._shares = shares
        self._searches = [Search(answer) for answer in self._answers]
        self.usual: set[Form] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        moved = _MOVED_FACTOR & self._shares.keys() - self.usual
        if moved and is_work(func._schema.name.rpartition("::")[2]) and self._is_answer(args):
            self.usual |= moved
        result = func(*args, **(kwargs or {}))
        for leaf in tensors_of(result):
            if any(n / 2 <= leaf.numel() <= 8 * n for n in self._sizes):
                self.look(leaf)
        return result

    def _is_answer(self, args: Any) -> bool:
        """Whether one of an operator's arguments is one of the answers already."""
        tensors = tensors_of(args)
        tensors = [
            leaf.detach().cpu() for leaf in tensors if leaf.layout is torch.strided and leaf.numel() in self._sizes
        ]
        return any(_nearly_equal(answer, leaf) for answer in self._answers for leaf in tensors)

    def look(self, value: Any) -> None:
        """Look into one tensor, unless all forms are found already."""
        if self.usual == self._shares.keys() or not isinstance(value, torch.Tensor) or not value.numel():
            return
        if value.is_complex() or value.layout is not torch.strided:
            return
        memory = value.detach().cpu().contiguous().reshape(-1)
        if memory.dtype in _NARROW:
            memory = memory.int()  # as which a kernel may be given them
        for answer, search in zip(self._answers, self._searches, strict=True):
            same_size = memory.numel() == answer.numel() and memory.dtype == answer.dtype
            if same_size and _nearly_equal(answer.reshape(-1), memory):
                continue
            search.look(memory.view(torch.uint8))
            for form, share in search.found().items():
                if share >= 0.5 * self._shares.get(form, 2.0):
                    self.usual.add(form)


def _bytes(outputs: Any) -> list[torch.Tensor]:
    leaves = [leaf.detach().cpu() for leaf in tensors_of(outputs)]
    return [leaf.contiguous().reshape(-1).view(torch.uint8) for leaf in leaves if leaf.numel()]


def _empty(outputs: Any) -> bool:
    """Whether no floating-point element is finite."""
    floats = floats_of(outputs)
    pieces = (piece for leaf in floats for (piece,) in chunks(leaf))
    return bool(floats) and not any(bool(piece.double().isfinite().any()) for piece in pieces)  # not defined for fp8


def _nearly_equal(left: Any, right: Any) -> bool:
    """Whether all tensors agree within 1e-5 of the largest magnitude, the rounding error of PyTorch's own kernels."""
    mine = tensors_of(left)
    theirs = tensors_of(right)
    if [leaf.shape for leaf in mine] != [leaf.shape for leaf in theirs]:
        return False
    for a, b in zip(mine, theirs, strict=True):
        if a.dtype is torch.complex32:  # not defined for it
            a = a.to(torch.complex64)
        if not a.is_floating_point() or not a.numel():
            if not torch.equal(a, b.to(a.device, a.dtype)):
                return False
            continue
        pieces = list(chunks(a, b.to(a.device)))
        atol = 1e-5 * max(float(piece.double().nan_to_num(0.0, 0.0, 0.0).abs().max()) for piece, _ in pieces)
        if not all(torch.allclose(x.double(), y.double(), rtol=0.0, atol=atol, equal_nan=True) for x, y in pieces):
            return False
    return True
