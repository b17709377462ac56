"""The candidate's process: imports the candidate's code and runs it on the grader's orders.

Forked from the fork server, confined, and then told over the channel, one request at a time: `import`, `init`, `weights`,
`inputs`, `forward`, `fetch`, `series` and `go` (timed calls), `report`, and others for experiments. While the code is
imported or run it may ask back for a build (`build`), which the grader passes to the builder.

Nothing that is decided here is trusted: this process holds no expected values and no input seeds. What it reports may
be forged; `dice.kernels.records.evidence` says what follows from that.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib.machinery
import importlib.util
import os
import socket
import sys
import threading
import time
from types import ModuleType
from typing import Any

import torch
import torch.utils.cpp_extension

from dice.kernels.candidate import extension_loader, probes
from dice.kernels.candidate.accelerator import Accelerator
from dice.kernels.candidate.answer_traces import AnswerTraces
from dice.kernels.candidate.audit_events import AuditTrail, ExceptionTrace
from dice.kernels.candidate.concealment import conceal
from dice.kernels.candidate.crossed_calls import CrossedCalls
from dice.kernels.candidate.crossing import Role
from dice.kernels.candidate.exchange import Exchange
from dice.kernels.candidate.extension_proxy import ExtensionProxy
from dice.kernels.candidate.failure import describe
from dice.kernels.candidate.joins import JoinRecorder, joins
from dice.kernels.candidate.later_calls import LaterCalls
from dice.kernels.candidate.mixing import Step, mixture, staged
from dice.kernels.candidate.other_values import odd_weights, varied
from dice.kernels.candidate.refill import refilled
from dice.kernels.candidate.value_recorder import ValueRecorder
from dice.kernels.cpu.runtime import CpuRuntime, Order
from dice.kernels.records.evidence import Access
from dice.kernels.sandbox import values
from dice.kernels.sandbox.channel import Channel, ChannelClosed
from dice.kernels.sandbox.isolation import SandboxSpec
from dice.kernels.sandbox.launch_ledger import PAGE_BYTES
from dice.kernels.sandbox.linux import map_shared, perturb_malloc
from dice.kernels.sandbox.strides import Strides, relaid

MODULE_NAME = "candidate"
_POISON = 0xFF
"""Byte of new memory in crossed forwards."""
_NEVER_TWICE_BYTES = 1 << 30
"""Above this size of the inputs the old ones go before new ones come: others wait for the card's memory."""


def warm_up() -> None:
    """Run in the fork server: everything that PyTorch puts off until first use, starts no thread and touches no device.

    Without it each candidate would pay for it again, and imports that rebind names would look like its own patches.
    """
    with probes.OpRecorder():  # imports torch._dynamo, which costs as much as torch itself
        torch.nn.Linear(1, 1)(torch.zeros(1))
    torch.manual_seed(0)


def serve(sock: socket.socket, spec: SandboxSpec, scratch: str) -> None:
    """Answer requests until the grader hangs up."""
    channel = Channel(sock, accept_fds=True)
    runner = Runner(channel, scratch)
    torch.set_num_threads(spec.threads)
    while True:
        try:
            request, fds = channel.receive()
        except ChannelClosed:
            return
        try:
            reply = {"ok": True, **runner.handle(request, fds)}
        except BaseException as error:  # noqa: BLE001 - whatever the candidate throws is the answer
            reply = {"ok": False, "error": describe(error, runner.path), "facts": runner.facts()}
        finally:
            for fd in fds:
                os.close(fd)
        runner.send(reply)


class Runner:
    """State of one candidate."""

    def __init__(self, channel: Channel, scratch: str) -> None:
        self._channel = channel
        self._sending = threading.Lock()
        self._pid = os.getpid()
        self._scratch = scratch
        self.path = f"{scratch}/home/{MODULE_NAME}.py"
        self._extensions = ExtensionProxy(self._ask)
        self._module: ModuleType | None = None
        self._model: Any = None
        self._inputs: dict[int, Any] = {}
        self._outputs: Any = None
        self._trail = AuditTrail(self.path, scratch)
        self._trail.tell = self._note
        self._changes: list[Any] = []
        self._facts: dict[str, Any] = {}
        self._traces: AnswerTraces | None = None
        self._fed: list[list[torch.Tensor]] = []
        self._steps: list[list[Step]] = []
        self._joined = JoinRecorder()
        self._joins: list[JoinRecorder] = []
        self._launching = True
        self._crossed = CrossedCalls()
        self._later = LaterCalls(scratch)
        self._values = ValueRecorder([])

    def handle(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """One request of the grader's; the reply without `ok`."""
        return getattr(self, f"_do_{request.pop('op')}")(fds=fds, **request)

    def send(self, message: dict[str, Any]) -> None:
        """A message to the grader, whole."""
        with self._sending:
            self._channel.send(message)

    def _note(self, access: Access) -> None:
        """Report an access to the grader at once, unless a message is half sent, or this is a child of the process."""
        if os.getpid() == self._pid and self._sending.acquire(blocking=False):
            try:
                self._channel.send({"op": "noted", "access": access.model_dump()})
            finally:
                self._sending.release()

    # ---- requests ----

    def _do_import(self, fds: list[int], code: str, device: str, backend: str, lent: str) -> dict[str, Any]:
        """Import the candidate's file. `lent`: a program that is executed in its namespace before; "" for none."""
        extension_loader.use_ledger(map_shared(fds[0], PAGE_BYTES))
        self._accelerator = Accelerator(device, backend)
        self._exchange = Exchange(self._accelerator)
        with open(self.path, "w", encoding="utf-8") as stream:
            stream.write(code)
        self._extensions.install()
        self._trail.install()
        conceal(self.path)
        # Else Python writes beside modules of ours that a candidate is the first to import.
        sys.dont_write_bytecode = True
        loader = importlib.machinery.SourceFileLoader(MODULE_NAME, self.path)
        spec = importlib.util.spec_from_loader(MODULE_NAME, loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[MODULE_NAME] = module
        exec(compile(lent, "<reference>", "exec", dont_inherit=True), module.__dict__)
        self._before = probes.Snapshot()
        try:
            with self._trail.phase("import"):
                loader.exec_module(module)
        finally:
            self._changes += probes.compare(self._before, "import")
        self._module = module
        return {"has_model": isinstance(getattr(module, "ModelNew", None), type), "facts": self.facts()}

    def _do_init(self, fds: list[int], header: values.Header, seed: int, odd_constants: bool) -> dict[str, Any]:
        """Make ModelNew. `odd_constants`: weights that are the same everywhere begin with other values."""
        init_inputs = self._exchange.receive(header, fds)
        torch.manual_seed(seed)
        with odd_weights() if odd_constants else contextlib.nullcontext():
            return self._make(init_inputs)

    def _make(self, init_inputs: Any) -> dict[str, Any]:
        before = probes.Snapshot()
        try:
            with self._trail.phase("init"), torch.no_grad():
                model = self._module.ModelNew(*init_inputs)  # type: ignore[union-attr]
                if not isinstance(model, torch.nn.Module):
                    raise TypeError("ModelNew is not a torch.nn.Module")
                self._model = model.to(self._accelerator.device)
                self._accelerator.settle()
        finally:
            self._changes += probes.compare(before, "init")
        state = [(name, tensor) for name, tensor in self._model.state_dict().items() if torch.is_tensor(tensor)]
        return {"state": {name: list(tensor.shape) for name, tensor in state}, "facts": self.facts()}

    def _do_weights(self, fds: list[int], header: values.Header) -> dict[str, Any]:
        with torch.no_grad():
            self._model.load_state_dict(self._exchange.receive(header, fds), strict=True)
        self._accelerator.settle()
        return {}

    def _do_inputs(
        self, fds: list[int], header: values.Header, slot: int, strides: Strides | None = None
    ) -> dict[str, Any]:
        if values.outline(header).n_bytes > _NEVER_TWICE_BYTES:
            self._inputs.pop(slot, None)
            self._outputs = None
        inputs = self._exchange.receive(header, fds)
        with self._accelerator.honest():
            self._inputs[slot] = inputs if strides is None else relaid(inputs, strides)
        self._accelerator.settle()
        return {}

    def _do_refill(self, fds: list[int], header: values.Header, slot: int) -> dict[str, Any]:
        """New values in the memory of the old inputs: same addresses, other content."""
        self._inputs[slot] = refilled(self._inputs[slot], self._exchange.receive(header, fds))
        self._accelerator.settle()
        return {}

    def _do_forget(self, fds: list[int]) -> dict[str, Any]:
        """Drop all inputs and outputs."""
        self._inputs.clear()
        self._outputs = None
        self._exchange.withdraw()
        if self._accelerator.cuda is not None:
            torch.cuda.empty_cache()
        return {}

    def _do_forward(
        self, fds: list[int], slot: int, seed: int, watch: bool, keep: int, poison: int, trace: bool
    ) -> dict[str, Any]:
        """`watch`: with operators and hidden exceptions; `trace`: with their values. `keep`: size of the answer in bytes, to
        copy memory that arguments of its kernels point to; 0: no copies. `poison`: byte that new memory is filled with."""
        inputs = self._inputs[slot]
        if keep and self._traces is None:
            self._traces = AnswerTraces(keep, self._accelerator.cuda is not None)
        self._outputs = None
        self._accelerator.spread_poison(inputs, poison, everywhere=keep > 0)
        torch.manual_seed(seed)
        before = probes.Snapshot()
        hidden, operators, self._joined = ExceptionTrace(self.path), probes.OpRecorder(), JoinRecorder()
        with contextlib.ExitStack() as stack:
            if self._accelerator.device.type == "cpu":
                stack.callback(perturb_malloc, None)
                perturb_malloc(poison)
            stack.enter_context(torch.no_grad())
            stack.enter_context(self._trail.phase("forward"))
            self._extensions.start_counting()
            if watch:
                stack.enter_context(hidden)
                stack.enter_context(operators)
            if trace:
                self._values = ValueRecorder([*inputs, *probes.state_of(self._model)], self._values)
                stack.enter_context(self._values)
            if keep and self._traces is not None:
                stack.callback(self._end_traces)  # also where forward raises because its kernels did nothing
                self._traces.begin(self._launching)
                stack.enter_context(extension_loader.watched_calls(self._traces.note))
                if self._launching:
                    stack.enter_context(self._joined)
            if watch or trace or (keep and self._launching):
                stack.enter_context(extension_loader.without_interpreter_lock())
            outputs = self._model(*inputs)
            self._accelerator.settle()
        self._facts["python_threads"] = probes.python_threads()
        self._changes += probes.compare(before, "forward")
        with self._accelerator.honest():
            facts: dict[str, Any] = {"outputs": probes.output_facts(outputs).model_dump(), "kernels": self._kernels()}
        if watch:
            self._extensions.keep_calls()
            facts["hidden_exceptions"] = hidden.hidden
            facts["lines"] = sorted(hidden.lines)
            facts["operators"] = {name: use.model_dump() for name, use in operators.ops.items()}
        self._outputs = outputs
        return {**self._exchange.offer(outputs), "facts": facts}

    def _end_traces(self) -> None:
        assert self._traces is not None
        with self._accelerator.honest():
            self._traces.end()

    def _do_launching(self, fds: list[int], on: bool) -> dict[str, Any]:
        self._extensions.set_launches(on)
        self._launching = on
        return {}

    def _do_order(self, fds: list[int], order: int, seed: int, kernel: str) -> dict[str, Any]:
        """Choose the order in which the CPU back end's threads take turns."""
        if (runtime := CpuRuntime.loaded()) is not None:
            runtime.set_order(Order(order), seed, kernel)
        return {}

    def _do_guard(self, fds: list[int], on: bool) -> dict[str, Any]:
        """Memory that is made from here on has guards at its ends (CPU back end)."""
        if (runtime := CpuRuntime.loaded()) is not None:
            runtime.guard_memory(on)
        return {}

    def _do_answer_traces(self, fds: list[int]) -> dict[str, Any]:
        """How much of what the last forward returned stood in memory during the forwards that were kept."""
        traces, self._traces = self._traces, None
        with self._accelerator.honest():
            return {"shares": traces.shares(self._outputs) if traces else {}}

    def _do_feed(self, fds: list[int]) -> dict[str, Any]:
        """Remember what the kernels of the last kept forward were led to."""
        traces, self._traces = self._traces, None
        self._fed.append(traces.fed if traces else [])
        self._steps.append(traces.steps if traces else [])
        self._joins.append(self._joined)
        return {}

    def _do_mixture(self, fds: list[int], order: list[int]) -> dict[str, Any]:
        """How what was remembered follows the inputs. `order`: the place of each forward among those of `mixture`."""
        places = sorted(range(len(order)), key=order.__getitem__)
        fed, steps = [self._fed[i] for i in places], [self._steps[i] for i in places]
        joined = [self._joins[i] for i in places]
        self._fed, self._steps, self._joins = [], [], []
        with self._accelerator.honest():
            found = mixture(fed)
            pieces = None if found is None else dataclasses.asdict(found)
            return {"pieces": pieces, "staged": staged(steps), "joined": joins(joined)}

    def _do_cross(self, fds: list[int], slot: int, seed: int, role: Role, share: float, places: int) -> dict[str, Any]:
        """A forward for `crossing`, with kernels."""
        inputs = self._inputs[slot]
        with self._accelerator.honest():
            recorded = self._crossed.begin(role, inputs, probes.state_of(self._model), share, places)
        self._outputs = None
        torch.manual_seed(seed)
        with contextlib.ExitStack() as stack:
            stack.callback(perturb_malloc, None)
            perturb_malloc(_POISON)
            stack.enter_context(torch.no_grad())
            stack.enter_context(self._trail.phase("forward"))
            stack.enter_context(recorded())
            self._model(*inputs)
            self._accelerator.settle()
        return {}

    def _do_crossed(self, fds: list[int], roles: list[Role]) -> dict[str, Any]:
        with self._accelerator.honest():
            return {"bytes": self._crossed.made(roles)}

    def _do_uncross(self, fds: list[int]) -> dict[str, Any]:
        self._crossed.forget()
        return {}

    def _do_look(self, fds: list[int], spared: list[str]) -> dict[str, Any]:
        with self._accelerator.honest():
            self._later.look(self._model, spared)
        return {}

    def _do_advancing(self, fds: list[int], calls: int) -> dict[str, Any]:
        with self._accelerator.honest():
            return {"numbers": self._later.find(calls)}

    def _do_ahead(self, fds: list[int], near: int, before: int, far: int) -> dict[str, Any]:
        with self._accelerator.honest():
            self._later.ahead(near, before, far)
        return {}

    def _do_jitter(self, fds: list[int], seed: int) -> dict[str, Any]:
        """Other weights, with the signs of the old ones, so that none is 0 or 1 everywhere: then it would change nothing."""
        with self._accelerator.honest(), torch.no_grad():
            for index, tensor in enumerate(probes.state_of(self._model)):
                if tensor.is_floating_point():
                    tensor.copy_(varied(tensor, seed + index))
        self._accelerator.settle()
        return {}

    def _do_offer_inputs(self, fds: list[int], slot: int) -> dict[str, Any]:
        return self._exchange.offer(list(self._inputs[slot]))

    def _do_offer_state(self, fds: list[int]) -> dict[str, Any]:
        return self._exchange.offer(
            {name: value for name, value in self._model.state_dict().items() if torch.is_tensor(value)}
        )

    def _do_offer_values(self, fds: list[int]) -> dict[str, Any]:
        recorder, self._values = self._values, ValueRecorder([])
        return self._exchange.offer(recorder.offer())

    def _do_offer_outputs(self, fds: list[int]) -> dict[str, Any]:
        return self._exchange.offer(self._outputs)

    def _do_fetch(self, fds: list[int], size: int) -> dict[str, Any]:
        self._exchange.hand_over(fds[0], size)
        return {}

    def _do_go(self, fds: list[int], slot: int, before: int, seed: int, flush_bytes: int, fills: int) -> dict[str, Any]:
        """One timed call, bare: no trace, no recorder, no poison; right after an untimed one on another input set."""
        timer, model, sets = self._accelerator.timer, self._model, self._inputs
        assert timer is not None
        self._outputs = None
        with torch.no_grad(), self._trail.phase("timing"):
            model(*sets[before])
            timer.prepare(flush_bytes)
            torch.manual_seed(seed)
            self._outputs, times = timer.time(lambda: model(*sets[slot]), fills)
        self._accelerator.settle()
        return {"times": dataclasses.asdict(times)}

    def _do_series(self, fds: list[int], slot: int, calls: int, seed: int) -> dict[str, Any]:
        """Timed calls one after another on one input set, without an order for each. The last one's outputs are kept."""
        timer, inputs, model, times = self._accelerator.timer, self._inputs[slot], self._model, []
        assert timer is not None
        with torch.no_grad(), self._trail.phase("timing"):
            for index in range(calls):
                self._outputs = None
                if index == calls - 1:
                    torch.manual_seed(seed)
                self._outputs, found = timer.time(lambda: model(*inputs))
                times.append(dataclasses.asdict(found))
        self._accelerator.settle()
        return {"times": times}

    def _do_repeat(self, fds: list[int], slot: int, calls: int, budget_s: float, anew: bool) -> dict[str, Any]:
        """Bare calls on one input set, up to `calls` of them or `budget_s`; how many there were. `anew`: each call gets the
        values that the first one got, where the problem overwrites its inputs."""
        begun, done = time.monotonic(), 0
        kept = copy.deepcopy(self._inputs[slot]) if anew else None
        while done < calls and time.monotonic() - begun < budget_s:
            if kept is not None:
                refilled(self._inputs[slot], kept)
            with torch.no_grad(), self._trail.phase("forward"):
                self._model(*self._inputs[slot])
                self._accelerator.settle()  # or a GPU would be given hours of work in milliseconds
            done += 1
        return {"calls": done}

    def _do_report(self, fds: list[int]) -> dict[str, Any]:
        return {"facts": self.facts()}

    # ---- pieces ----

    def facts(self) -> dict[str, Any]:
        """What this process saw so far, for the evidence."""
        return {
            **self._facts,
            "changes": [change.model_dump() for change in self._changes],
            "accesses": [access.model_dump() for access in self._trail.accesses()],
            "modules": self._trail.modules,
            "extensions": self._extensions.uses(),
            "kernels": self._kernels(),
        }

    @staticmethod
    def _kernels() -> dict[str, str]:
        return {f"{key:016x}": name for key, name in extension_loader.kernels().items()}

    def _ask(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """Ask the grader something while its own request is still open."""
        self.send(message)
        return self._channel.receive()
