"""Forwards of the candidate's model on the grader's orders: watched, traced, or with copies of what kernels are led to."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from dice.kernels.candidate import extension_loader, probes
from dice.kernels.candidate.answer_traces import AnswerTraces
from dice.kernels.candidate.audit_events import ExceptionTrace
from dice.kernels.candidate.joins import JoinRecorder, joins
from dice.kernels.candidate.mixing import Step, mixture, staged
from dice.kernels.candidate.noise import LAST_ANSWER, nearly_right, sizes_of
from dice.kernels.candidate.program import Program
from dice.kernels.candidate.value_recorder import ValueRecorder
from dice.kernels.sandbox.leaves import given_back
from dice.kernels.sandbox.linux import perturbed_malloc
from dice.kernels.sandbox.seeding import seed_generators


@dataclass(frozen=True)
class _Led:
    """What the kernels of one forward were led to (`AnswerTraces.fed`, `AnswerTraces.steps`), and what PyTorch joined."""

    fed: list[torch.Tensor]
    steps: list[Step]
    joined: JoinRecorder


class Forwards:
    """Answers the requests for forwards, and for what was kept of them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._launching = True
        self._values = ValueRecorder([])
        self._traces: AnswerTraces | None = None
        self._joined = JoinRecorder()
        self._led: list[_Led] = []

    def do_forward(
        self, slot: int, seed: int, watch: bool, keep: int, poison: int, trace: bool, inference: bool = False
    ) -> dict[str, Any]:
        """`watch`: with operators and hidden exceptions; `trace`: with their values. `keep`: size of the answer in bytes, to
        copy memory that arguments of its kernels point to; 0: no copies. `poison`: byte that new memory is filled with;
        below 0: finite numbers are left over in it, or (`LAST_ANSWER`) the last answer with a few wrong elements.
        `inference`: in PyTorch's inference mode."""
        program, accelerator = self._program, self._program.accelerator
        inputs = program.inputs[slot]
        if keep and self._traces is None:
            self._traces = AnswerTraces(keep, accelerator.cuda is not None)
        sizes = sizes_of([*inputs, program.outputs])
        with accelerator.honest():
            answers = nearly_right(program.outputs) if poison == LAST_ANSWER else []
        program.outputs = None
        piece_bytes = self._traces.most_piece if keep and self._traces and self._launching else 0
        if poison >= 0:
            accelerator.spread_poison(inputs, poison, everywhere=keep > 0, piece_bytes=piece_bytes)
        elif poison == LAST_ANSWER:
            _between = accelerator.leave(answers)  # held to the end of the call
        else:
            accelerator.leave_noise(sizes)
        seed_generators(seed, accelerator.device)
        before = probes.Snapshot()
        hidden, operators = ExceptionTrace(program.path), probes.OpRecorder()
        with contextlib.ExitStack() as stack:
            if accelerator.device.type == "cpu" and poison >= 0:
                stack.enter_context(perturbed_malloc(poison))
            stack.enter_context(torch.inference_mode() if inference else torch.no_grad())
            stack.enter_context(program.trail.phase("forward"))
            program.extensions.start_counting()
            if watch:
                stack.enter_context(hidden)
                stack.enter_context(operators)
            if trace:
                self._values = ValueRecorder([*inputs, *probes.state_of(program.model)], self._values)
                stack.enter_context(self._values)
            if keep and self._traces is not None:
                stack.enter_context(self._copies(self._traces))
            if watch or trace or (keep and self._launching):
                stack.enter_context(extension_loader.without_interpreter_lock())
            outputs = program.model(*inputs)
            accelerator.settle()
        program.python_threads = probes.python_threads()
        program.changes += probes.compare(before, "forward")
        with accelerator.honest():
            returned = probes.output_facts(outputs)
            returned.given_back = given_back(outputs, inputs)
            facts: dict[str, Any] = {"outputs": returned.model_dump(), "kernels": program.kernels()}
        if watch:
            program.extensions.keep_calls()
            facts["hidden_exceptions"] = hidden.hidden
            facts["lines"] = sorted(hidden.lines)
            facts["operators"] = {name: use.model_dump() for name, use in operators.ops.items()}
        program.outputs = outputs
        return {**program.exchange.offer(outputs), "facts": facts}

    @contextlib.contextmanager
    def _copies(self, traces: AnswerTraces) -> Iterator[None]:
        """Copy what kernels are led to in the block, also where forward raises because its kernels did nothing."""
        self._joined = JoinRecorder()
        try:
            traces.begin(self._launching)
            joined = self._joined if self._launching else contextlib.nullcontext()
            with extension_loader.watched_calls(traces.note), joined:
                yield
        finally:
            with self._program.accelerator.honest():
                traces.end()

    def do_launching(self, on: bool) -> dict[str, Any]:
        """Let kernels run from here on, or make their launches do nothing."""
        extension_loader.set_launches(enabled=on)
        self._launching = on
        return {}

    def do_offer_values(self) -> dict[str, Any]:
        """Let the grader fetch the values of the last traced forward."""
        recorder, self._values = self._values, ValueRecorder([])
        return self._program.exchange.offer(recorder.offer())

    def do_answer_traces(self) -> dict[str, Any]:
        """How much of what the last forward returned stood in memory during the forwards that were kept."""
        traces, self._traces = self._traces, None
        with self._program.accelerator.honest():
            return {"shares": traces.shares(self._program.outputs) if traces else {}}

    def do_feed(self) -> dict[str, Any]:
        """Remember what the kernels of the last kept forward were led to."""
        traces, self._traces = self._traces, None
        fed, steps = (traces.fed, traces.steps) if traces else ([], [])
        self._led.append(_Led(fed, steps, self._joined))
        return {}

    def do_mixture(self, order: list[int]) -> dict[str, Any]:
        """How what was remembered follows the inputs. `order`: the place of each forward among those of `mixture`."""
        led = [self._led[index] for index in sorted(range(len(order)), key=order.__getitem__)]
        self._led = []
        with self._program.accelerator.honest():
            found = mixture([each.fed for each in led])
            return {
                "pieces": None if found is None else dataclasses.asdict(found),
                "staged": staged([each.steps for each in led]),
                "joined": joins([each.joined for each in led]),
            }
