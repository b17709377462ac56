"""What the reference computes in each forward from its weights alone, and whether a candidate lets PyTorch compute it before:
while its model is made, while it gets its weights, or in its first forward.

Only later forwards are timed, so nothing of that costs it any time. `dice.kernels.checks.prepared` compares both.
"""

from __future__ import annotations

import contextlib
import secrets
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dice.errors import DiceError
from dice.kernels.candidate.probes import OpRecorder, add_use, use_of
from dice.kernels.candidate.value_recorder import written_by
from dice.kernels.checks.prepared import mixes
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.facts import busier
from dice.kernels.grader.reference import to_device
from dice.kernels.records.evidence import OpUse
from dice.kernels.sandbox.leaves import place_of, tensors_of
from dice.kernels.sandbox.session import CandidateRaised


def experiment_prepared(run: CandidateRun) -> None:
    """Record what the reference makes of its weights alone, what its constructor does, and the first forward of another model
    of the candidate's. What is done when that is made and gets its weights is always recorded."""
    if run.last is None:
        return
    with run.record.phase("experiments"), contextlib.suppress(CandidateRaised, DiceError):
        own = to_device(run.last.inputs, run.place.device)
        model = run.reference.model(run.weights_seed)
        with WeightsRecorder(list(model.state_dict().values())) as recorder:
            run.reference.run(model, own, run.last.forward_seed)
        if not mixes(recorder.ops):
            return
        run.reference.forget()
        with OpRecorder() as constructor:
            run.reference.model(run.weights_seed)
        run.make_model(run.weights_seed)
        run.send("inputs", run.draw_inputs(secrets.randbits(48)))
        first = run.forward(secrets.randbits(48), watch=True).facts.operators
        run.evidence.first_ops = busier(run.evidence.first_ops or {}, first)
        run.evidence.constructor_ops, run.evidence.weights_ops = constructor.ops, recorder.ops


class WeightsRecorder(TorchDispatchMode):
    """Records the operators that read nothing but `weights` and what was made of them or of nothing."""

    def __init__(self, weights: list[torch.Tensor]) -> None:
        super().__init__()
        self.ops: dict[str, OpUse] = {}
        self._free = {place_of(weight): weight for weight in weights if place_of(weight)}
        """By address. They are kept, so that no address is given twice."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """One operator."""
        kwargs = kwargs or {}
        given = tensors_of((args, kwargs))
        result = func(*args, **kwargs)
        if all(place_of(tensor) in self._free for tensor in given):
            self._free |= {place_of(tensor): tensor for tensor in tensors_of(result) if place_of(tensor)}
            if given:
                add_use(self.ops, func._schema.name, use_of(func, args, kwargs, result))
            return result
        for tensor in [*written_by(func, args, kwargs), *tensors_of(result)]:
            self._free.pop(place_of(tensor), None)
        return result
