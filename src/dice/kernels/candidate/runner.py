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
from dice.kernels.candidate.answer_traces import AnswerTraces
from dice.kernels.candidate.audit_events import AuditTrail, ExceptionTrace
from dice.kernels.candidate.call_timer import CallTimer
from dice.kernels.candidate.concealment import conceal
from dice.kernels.candidate.extension_proxy import ExtensionProxy
from dice.kernels.candidate.failure import describe
from dice.kernels.candidate.other_values import odd_weights_of_norms, varied
from dice.kernels.candidate.poison import Poison
from dice.kernels.candidate.refill import refilled
from dice.kernels.cpu.device import CudaOnCpu, install
from dice.kernels.cpu.runtime import CpuRuntime, Order
from dice.kernels.records.evidence import Access
from dice.kernels.sandbox import values
from dice.kernels.sandbox.channel import Channel, ChannelClosed
from dice.kernels.sandbox.cuda_runtime import CudaError, CudaRuntime
from dice.kernels.sandbox.isolation import SandboxSpec
from dice.kernels.sandbox.launch_ledger import PAGE_BYTES
from dice.kernels.sandbox.linux import map_shared, perturb_malloc
from dice.kernels.sandbox.shared_memory import SharedBuffer
from dice.kernels.sandbox.strides import Strides, relaid

MODULE_NAME = "candidate"


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
        self._device = torch.device("cpu")
        self._cuda: CudaRuntime | None = None
        self._poison: Poison | None = None
        self._module: ModuleType | None = None
        self._model: Any = None
        self._inputs: dict[int, Any] = {}
        self._outputs: Any = None
        self._mapped: dict[str, SharedBuffer] = {}
        self._to_send: list[torch.Tensor] = []
        self._header: values.Header = {}
        self._trail = AuditTrail(self.path, scratch)
        self._trail.tell = self._note
        self._changes: list[Any] = []
        self._facts: dict[str, Any] = {}
        self._timer: CallTimer | None = None
        self._pretence: CudaOnCpu | None = None
        self._traces: AnswerTraces | None = None
        self._launching = True

    def handle(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """One request of the grader's; the reply without `ok`."""
        return getattr(self, f"_do_{request.pop('op')}")(fds=fds, **request)

    def send(self, message: dict[str, Any]) -> None:
        """A message to the grader, whole."""
        with self._sending:
            self._channel.send(message)

    def _note(self, access: Access) -> None:
        """Tell the grader at once of an act, unless a message is half sent, or this is a child of the process."""
        if os.getpid() == self._pid and self._sending.acquire(blocking=False):
            try:
                self._channel.send({"op": "noted", "access": access.model_dump()})
            finally:
                self._sending.release()

    # ---- requests ----

    def _do_import(self, fds: list[int], code: str, device: str, backend: str, lent: str) -> dict[str, Any]:
        """Import the candidate's file. `lent`: a program that is executed in its namespace before; "" for none."""
        extension_loader.use_ledger(map_shared(fds[0], PAGE_BYTES))
        self._device = torch.device(device)
        if self._device.type == "cuda":
            self._cuda = CudaRuntime()
            self._timer = CallTimer(self._cuda, self._device)
            self._poison = Poison(self._cuda, self._device)
        elif backend == "cpu":
            self._pretence = install()
        else:
            _claim_cuda()
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
        self._before = probes.snapshot()
        try:
            with self._trail.phase("import"):
                loader.exec_module(module)
        finally:
            self._changes += probes.compare(self._before, "import")
        self._module = module
        return {"has_model": isinstance(getattr(module, "ModelNew", None), type), "facts": self.facts()}

    def _do_init(self, fds: list[int], header: values.Header, seed: int, odd_norms: bool) -> dict[str, Any]:
        """Make ModelNew. `odd_norms`: PyTorch's norms begin with other weights than ones and zeros."""
        init_inputs = self._receive(header, fds)
        torch.manual_seed(seed)
        with odd_weights_of_norms() if odd_norms else contextlib.nullcontext():
            return self._make(init_inputs)

    def _make(self, init_inputs: Any) -> dict[str, Any]:
        before = probes.snapshot()
        try:
            with self._trail.phase("init"), torch.no_grad():
                model = self._module.ModelNew(*init_inputs)  # type: ignore[union-attr]
                if not isinstance(model, torch.nn.Module):
                    raise TypeError("ModelNew is not a torch.nn.Module")
                self._model = model.to(self._device)
                self._settle()
        finally:
            self._changes += probes.compare(before, "init")
        state = self._model.state_dict()
        shapes = {name: list(tensor.shape) for name, tensor in state.items() if torch.is_tensor(tensor)}
        return {"state": shapes, "facts": self.facts()}

    def _do_weights(self, fds: list[int], header: values.Header) -> dict[str, Any]:
        state = self._receive(header, fds)
        with torch.no_grad():
            self._model.load_state_dict(state, strict=True)
        self._settle()
        return {}

    def _do_inputs(
        self, fds: list[int], header: values.Header, slot: int, strides: Strides | None = None
    ) -> dict[str, Any]:
        inputs = self._receive(header, fds)
        with self._honest():
            self._inputs[slot] = inputs if strides is None else relaid(inputs, strides)
        self._settle()
        return {}

    def _do_refill(self, fds: list[int], header: values.Header, slot: int) -> dict[str, Any]:
        """New values in the memory of the old inputs: same addresses, other content."""
        self._inputs[slot] = refilled(self._inputs[slot], self._receive(header, fds))
        self._settle()
        return {}

    def _do_forget(self, fds: list[int]) -> dict[str, Any]:
        """Drop all inputs and outputs."""
        self._inputs.clear()
        self._outputs, self._to_send = None, []
        if self._cuda is not None:
            torch.cuda.empty_cache()
        return {}

    def _do_forward(self, fds: list[int], slot: int, seed: int, watch: bool, keep: int) -> dict[str, Any]:
        """`watch`: with operators and hidden exceptions. `keep`: with copies of what its kernels are led to, where the answer
        has so many bytes; 0: without."""
        inputs = self._inputs[slot]
        if keep and self._traces is None:
            self._traces = AnswerTraces(keep, self._cuda is not None)
        self._outputs = None
        if self._poison is not None:
            self._poison.spread(inputs)
        torch.manual_seed(seed)
        before = probes.snapshot()
        hidden, operators = ExceptionTrace(self.path), probes.OpRecorder()
        with contextlib.ExitStack() as stack:
            if self._device.type == "cpu":
                stack.callback(perturb_malloc, False)
                perturb_malloc(True)
            stack.enter_context(torch.no_grad())
            stack.enter_context(self._trail.phase("forward"))
            self._extensions.start_counting()
            if watch:
                stack.enter_context(hidden)
                stack.enter_context(operators)
                stack.enter_context(extension_loader.without_interpreter_lock())
            if keep and self._traces is not None:
                stack.callback(self._end_traces)  # also where forward raises because its kernels did nothing
                self._traces.begin(self._launching)
                stack.enter_context(extension_loader.watched_calls(self._traces.note))
            outputs = self._model(*inputs)
            self._settle()
        self._facts["python_threads"] = probes.python_threads()
        self._changes += probes.compare(before, "forward")
        with self._honest():
            seen = probes.output_facts(outputs)
        facts: dict[str, Any] = {"outputs": seen.model_dump(), "kernels": self._kernels()}
        if watch:
            self._extensions.keep_calls()
            facts["hidden_exceptions"] = hidden.hidden
            facts["lines"] = sorted(hidden.lines)
            facts["operators"] = {name: use.model_dump() for name, use in operators.ops.items()}
        self._outputs = outputs
        return {**self._offer(outputs), "facts": facts}

    def _end_traces(self) -> None:
        assert self._traces is not None
        with self._honest():
            self._traces.end()

    def _do_launching(self, fds: list[int], on: bool) -> dict[str, Any]:
        self._extensions.set_launches(on)
        self._launching = on
        return {}

    def _do_order(self, fds: list[int], order: int, seed: int, kernel: str) -> dict[str, Any]:
        """Choose the order in which the CPU back end's threads take turns."""
        runtime = CpuRuntime.loaded()
        if runtime is not None:
            runtime.set_order(Order(order), seed, kernel)
        return {}

    def _do_guard(self, fds: list[int], on: bool) -> dict[str, Any]:
        """Memory that is made from here on has guards at its ends (CPU back end)."""
        runtime = CpuRuntime.loaded()
        if runtime is not None:
            runtime.guard_memory(on)
        return {}

    def _do_answer_traces(self, fds: list[int]) -> dict[str, Any]:
        """How much of what the last forward returned stood in memory during the forwards that were kept."""
        traces, self._traces = self._traces, None
        with self._honest():
            return {"shares": traces.shares(self._outputs) if traces else {}}

    def _do_jitter(self, fds: list[int], seed: int) -> dict[str, Any]:
        """Other weights, with the signs of the old ones, so that none is 0 or 1 everywhere: then it would change nothing."""
        with self._honest(), torch.no_grad():
            for index, tensor in enumerate(probes.state_of(self._model)):
                if tensor.is_floating_point():
                    tensor.copy_(varied(tensor, seed + index))
        self._settle()
        return {}

    def _do_offer_inputs(self, fds: list[int], slot: int) -> dict[str, Any]:
        return self._offer(list(self._inputs[slot]))

    def _do_offer_state(self, fds: list[int]) -> dict[str, Any]:
        return self._offer({name: value for name, value in self._model.state_dict().items() if torch.is_tensor(value)})

    def _do_offer_outputs(self, fds: list[int]) -> dict[str, Any]:
        return self._offer(self._outputs)

    def _do_fetch(self, fds: list[int], size: int) -> dict[str, Any]:
        with self._honest():
            values.write(self._to_send, self._header, self._shared("outputs", fds[0], size).tensor)
        self._to_send = []
        return {}

    def _do_go(self, fds: list[int], slot: int, before: int, seed: int, flush_bytes: int, fills: int) -> dict[str, Any]:
        """One timed call, bare: no trace, no recorder, no poison; right after an untimed one on another input set."""
        assert self._timer is not None
        model, sets = self._model, self._inputs
        self._outputs = None
        with torch.no_grad(), self._trail.phase("timing"):
            model(*sets[before])
            self._timer.prepare(flush_bytes)
            torch.manual_seed(seed)
            self._outputs, times = self._timer.time(lambda: model(*sets[slot]), fills)
        self._settle()
        return {"times": dataclasses.asdict(times)}

    def _do_series(self, fds: list[int], slot: int, calls: int, seed: int) -> dict[str, Any]:
        """Timed calls one after another on one input set, without an order for each. The last one's outputs are kept."""
        assert self._timer is not None
        inputs, model, times = self._inputs[slot], self._model, []
        with torch.no_grad(), self._trail.phase("timing"):
            for index in range(calls):
                self._outputs = None
                if index == calls - 1:
                    torch.manual_seed(seed)
                self._outputs, found = self._timer.time(lambda: model(*inputs))
                times.append(dataclasses.asdict(found))
        self._settle()
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
                self._settle()  # or a GPU would be given hours of work in milliseconds
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

    def _receive(self, header: values.Header, fds: list[int]) -> Any:
        """Rebuild a value of the grader's on the device, in memory of this process."""
        with self._honest():
            if not fds:
                return values.read(header, torch.empty(0, dtype=torch.uint8), self._place)
            buffer = self._shared("inputs", fds[0], os.fstat(fds[0]).st_size)
            value = values.read(header, buffer.tensor, self._place)
            self._settle()
            return value

    def _shared(self, use: str, fd: int, size: int) -> SharedBuffer:
        """The grader's buffer in this process's memory. It stays there: the grader sends the same one again, and to touch
        gigabytes of fresh pages takes seconds."""
        buffer = self._mapped.get(use)
        if buffer is None or not os.path.sameopenfile(buffer.fd, fd):
            if buffer is not None:
                self._mapped.pop(use).close()
            buffer = self._mapped[use] = SharedBuffer(os.dup(fd), size)
            if self._cuda is not None:
                buffer.pin(self._cuda)
        return buffer

    def _place(self, view: torch.Tensor, device: str) -> torch.Tensor:
        return view.to(self._device, copy=True)

    def _offer(self, value: Any) -> dict[str, Any]:
        with self._honest():
            self._header, self._to_send, size = values.lay_out(value)
        return {"header": self._header, "bytes": size}

    def _settle(self) -> None:
        """Wait for the device; an error state that is left behind is a failure, reported or not."""
        if self._pretence is not None:
            runtime = CpuRuntime.loaded()
            if runtime is not None and (left := runtime.take_error()) is not None:
                raise CudaError(left, runtime.fault() or "left behind by an earlier call")
            if runtime is not None and (beside := runtime.take_memory_fault()):
                raise CudaError("cudaErrorIllegalAddress", beside)
        if self._cuda is None or not torch.cuda.is_initialized():
            return
        self._cuda.synchronize()
        left = self._cuda.take_error()
        if left is not None:
            raise CudaError(left, "left behind by an earlier call")

    def _honest(self) -> contextlib.AbstractContextManager[None]:
        """For this class's own handling of tensors, where `cuda` is only pretended."""
        return contextlib.nullcontext() if self._pretence is None else self._pretence.honest()


def _claim_cuda() -> None:
    """For a build ahead, where there is no GPU: candidates that ask before they build are to build.

    What then needs the GPU raises, and settles nothing (`dice.kernels.grader.sequence.prebuild_candidate`).
    """
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1
