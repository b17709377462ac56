"""Records the values of both forwards, on the same inputs and weights, for `dice.kernels.checks.shared_values`."""

from __future__ import annotations

import contextlib
import secrets
from itertools import groupby
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from dice.errors import DiceError
from dice.kernels.candidate.probes import add_use, use_of
from dice.kernels.candidate.value_recorder import GIVES, MOST_PRINTS, READS, TAKES, written_by
from dice.kernels.checks.shared_values import Call, Candidate, Reference, Step, steps_done
from dice.kernels.checks.workload import own_name, work_of
from dice.kernels.compare import compare_outputs
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.reference import to_device
from dice.kernels.likeness.prints import WIDTH, Prints
from dice.kernels.records.evidence import OpUse
from dice.kernels.sandbox.leaves import place_of, tensors_of
from dice.kernels.sandbox.replies import Offer
from dice.kernels.sandbox.session import CandidateRaised

_READING = "_local_scalar_dense"
_MOST_STEPS = 300
"""Steps of the reference at either end whose results are compared: those between lie in the middle of a long loop."""


def experiment_shared_values(run: CandidateRun) -> None:
    """Find which operators of the reference PyTorch did for the candidate, where it runs any that compute. On inputs of
    its own: a buffer of the candidate may hold what a kernel made of others."""
    theirs, mine = run.evidence.reference_ops, run.evidence.candidate_ops
    if run.last is None or not run.evidence.launches or not theirs or not work_of(mine or {}):
        return
    with run.record.phase("experiments"), contextlib.suppress(CandidateRaised, DiceError):
        before, other = (run.draw_inputs(secrets.randbits(48)) for _ in range(2))
        inputs, seed = one_element_changed(before, other), secrets.randbits(48)
        run.send("inputs", before)
        run.forward(seed, trace=True)
        run.send("inputs", inputs)
        outputs = run.forward(seed, trace=True)
        own, model = to_device(inputs, run.place.device), run.reference.model(run.weights_seed)
        recorder = ReferenceRecorder([*tree_leaves(own), *model.state_dict().values()], _count(theirs))
        with recorder:
            expected = run.reference.run(model, own, seed)
        recorder.end(expected)
        if compare_outputs(expected, run.fetch(outputs, expected), "paper").ok:
            limit = torch.empty(MOST_PRINTS, WIDTH, dtype=torch.float64)
            candidate = candidate_values(run.fetch(run.ask("offer_values", Offer), limit))
            run.evidence.shared_ops = shared_ops(recorder, candidate)


def one_element_changed(inputs: list[Any], other: list[Any]) -> list[Any]:
    """`inputs` with an element of each floating-point tensor as `other` has it."""

    def changed(value: Any, drawn: Any) -> Any:
        floats = all(torch.is_tensor(each) and each.is_floating_point() for each in (value, drawn))
        if not floats or value.shape != drawn.shape or not value.numel():
            return value
        place = secrets.randbelow(value.numel())
        copy = value.clone(memory_format=torch.contiguous_format)
        copy.view(-1)[place] = drawn.reshape(-1)[place]
        return copy

    leaves, structure = tree_flatten(inputs)
    drawn = tree_leaves(other)
    if len(leaves) != len(drawn):
        return inputs
    return tree_unflatten([changed(*pair) for pair in zip(leaves, drawn, strict=True)], structure)


def shared_ops(recorder: ReferenceRecorder, candidate: Candidate) -> dict[str, OpUse]:
    """The reference's operators that the candidate's did. A bias that a kernel may add does not count."""
    found: dict[str, OpUse] = {}
    for place, is_equal in sorted(steps_done(recorder.values, candidate).items()):
        if place in recorder.uses:
            name, use = recorder.uses[place]
            add_use(found, name, use.model_copy(update={} if is_equal else {"bias": 0}))
    return found


def candidate_values(offered: Any) -> Candidate:
    """What the candidate's process recorded; nothing where it does not fit together."""
    if not isinstance(offered, list) or len(offered) != 5:
        return Candidate()
    names, rows, prints, changed, given = offered
    if not (isinstance(names, list) and isinstance(given, int) and all(map(torch.is_tensor, (rows, prints, changed)))):
        return Candidate()
    if not prints.ndim:  # it has no length
        return Candidate()
    count = len(prints)
    fits = rows.shape[1:] == (3,) and prints.shape[1:] == (WIDTH,) and changed.shape == (count,) and 0 <= given <= count
    if not fits or (rows.dtype, prints.dtype, changed.dtype) != (torch.int64, torch.float64, torch.int64):
        return Candidate()
    numbers = rows.tolist()
    if not all(0 <= call < len(names) and -1 <= print_ < count for call, _, print_ in numbers):
        return Candidate()
    calls = [_call(str(names[call]), list(own)) for call, own in groupby(numbers, key=lambda row: row[0])]
    return Candidate(calls, prints.cpu(), given, changed.tolist())


def _call(name: str, rows: list[list[int]]) -> Call:
    takes, gives = (tuple(print_ for _, side, print_ in rows if side == wanted) for wanted in (TAKES, GIVES))
    takes_number = any(side == READS for _, side, _ in rows)
    return Call(takes, gives, bool(own_name(name)), takes_number, own_name(name) == _READING)


def _count(ops: dict[str, OpUse]) -> int:
    return sum(use.count for use in ops.values())


class ReferenceRecorder(TorchDispatchMode):
    """Records the reference's steps: who wrote what each takes, by storages, and prints of the results. `given`: its inputs
    and weights. `count`: how many operators it will call."""

    def __init__(self, given: list[Any], count: int) -> None:
        super().__init__()
        self._steps: list[Step] = []
        self.uses: dict[int, tuple[str, OpUse]] = {}
        """By the place of the step."""
        self._prints = Prints(MOST_PRINTS)
        self._zeros = {place_of(value) for value in given if torch.is_tensor(value) and not value.count_nonzero()}
        """Biases that begin as zeros, among others: a result is the same without them."""
        self._writers: dict[int, frozenset[int]] = {}
        """Last step that wrote to a storage; it takes what was there before."""
        self._partly: dict[int, bool] = {}
        self._count = count
        for value in given:
            self._prints.add(value)
        self._given = len(self._prints)

    @property
    def values(self) -> Reference:
        """What was recorded."""
        return Reference(self._steps, self._prints.stacked(), self._given)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        taken = tensors_of((args, kwargs))
        self._filled(taken)
        after = frozenset().union(*(self._writers.get(place_of(leaf), frozenset()) for leaf in taken))
        result = func(*args, **kwargs)
        given, written = tensors_of(result), written_by(func, args, kwargs)
        old = {place_of(leaf) for leaf in taken}
        is_view = not written and bool(given) and all(place_of(leaf) in old for leaf in given)
        call = len(self.uses)
        use = use_of(func, args, kwargs, result)
        adds_zeros = any(place_of(leaf) in self._zeros for leaf in taken)
        self.uses[len(self._steps)] = func._schema.name, use.model_copy(update={"bias": 0}) if adds_zeros else use
        near = min(call, self._count - call) <= _MOST_STEPS and "empty" not in func._schema.name
        place = self._add(after, given or written if near else [], is_view)
        for leaf in written:
            self._writers[place_of(leaf)] = frozenset({place})
            self._partly[place_of(leaf)] = leaf.nbytes < leaf.untyped_storage().nbytes()
        for leaf in given:
            if place_of(leaf) not in old:
                self._writers[place_of(leaf)] = frozenset({place})
                self._partly[place_of(leaf)] = False
        return result

    def end(self, outputs: Any) -> None:
        """After the forward: outputs may be filled in parts."""
        self._filled(tensors_of(outputs))

    def _filled(self, tensors: list[torch.Tensor]) -> None:
        """Tensors that were written to in parts are results as a whole."""
        for leaf in tensors:
            if self._partly.get(place_of(leaf)) and leaf.nbytes == leaf.untyped_storage().nbytes():
                self._writers[place_of(leaf)] = frozenset({self._add(self._writers[place_of(leaf)], [leaf], False)})
                self._partly[place_of(leaf)] = False

    def _add(self, after: frozenset[int], results: list[torch.Tensor], is_view: bool) -> int:
        sizes = [result.numel() for result in results]
        rows = [self._prints.add(result) for result in results]
        whole = rows[sizes.index(max(sizes))] if sizes and sizes.count(max(sizes)) == 1 else -1
        self._steps.append(Step(after, tuple(row for row in rows if row >= 0), whole, is_view))
        return len(self._steps) - 1
