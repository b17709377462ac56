"""The conversation with the grader: what it asks of the candidate's process, and who in it answers.

One request at a time comes over the channel: `import`, `init`, `weights`, `inputs`, `forward`, `fetch`, `series` and `go`
(timed calls), `report`, and others for experiments. A request `x` goes to the method `do_x` of the object that has it. While
the candidate's code is imported or run, the process may ask back for a build (`build`), which the grader passes to the
builder.

Nothing that is decided here is trusted: this process holds no expected values and no input seeds. What it reports may
be forged; `dice.kernels.records.evidence` says what follows from that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import threading
from collections.abc import Sequence
from typing import Any

import torch

from dice.kernels.candidate import extension_loader, probes
from dice.kernels.candidate.bare_calls import BareCalls
from dice.kernels.candidate.crossed_calls import CrossedCalls
from dice.kernels.candidate.failure import describe
from dice.kernels.candidate.forwards import Forwards
from dice.kernels.candidate.later_calls import LaterCalls
from dice.kernels.candidate.moved_constants import Move, move_all, moving
from dice.kernels.candidate.other_values import odd_weights, varied
from dice.kernels.candidate.program import Program
from dice.kernels.candidate.refill import refilled
from dice.kernels.cpu.runtime import STEP_CLASSES, CpuRuntime, Order
from dice.kernels.records.evidence import Access
from dice.kernels.sandbox import values
from dice.kernels.sandbox.channel import Channel, ChannelClosed
from dice.kernels.sandbox.isolation import SandboxSpec
from dice.kernels.sandbox.launch_ledger import PAGE_BYTES
from dice.kernels.sandbox.linux import map_shared
from dice.kernels.sandbox.seeding import seed_generators
from dice.kernels.sandbox.strides import Strides, relaid, surrounded

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
            reply = {"ok": False, "error": describe(error, runner.program.path), "facts": runner.program.facts()}
        finally:
            for fd in fds:
                os.close(fd)
        runner.send(reply)


class Runner:
    """Answers for one candidate. What concerns its program and its values it does itself."""

    def __init__(self, channel: Channel, scratch: str) -> None:
        self._channel = channel
        self._sending = threading.Lock()
        self._pid = os.getpid()
        self.program = Program(scratch, self._ask, self._note)
        others = (Forwards, CrossedCalls, LaterCalls, BareCalls)
        self._answering: list[Any] = [self, *(kind(self.program) for kind in others)]

    def handle(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """One request of the grader's; the reply without `ok`. Those that come with descriptors take `fds`."""
        name = f"do_{request.pop('op')}"
        answering = next(each for each in self._answering if hasattr(each, name))
        descriptors = {"fds": fds} if fds else {}
        return getattr(answering, name)(**request, **descriptors)

    def send(self, message: dict[str, Any]) -> None:
        """A message to the grader, whole."""
        with self._sending:
            self._channel.send(message)

    def _ask(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """Ask the grader something while its own request is still open."""
        self.send(message)
        return self._channel.receive()

    def _note(self, access: Access) -> None:
        """Report an access to the grader at once, unless a message is half sent, or this is a child of the process."""
        if os.getpid() == self._pid and self._sending.acquire(blocking=False):
            try:
                self._channel.send({"op": "noted", "access": access.model_dump()})
            finally:
                self._sending.release()

    # ---- the program ----

    def do_import(self, code: str, device: str, backend: str, lent: str, fds: list[int]) -> dict[str, Any]:
        """Import the candidate's file. `lent`: a program that is executed in its namespace before; "" for none."""
        extension_loader.use_ledger(map_shared(fds[0], PAGE_BYTES))
        has_model = self.program.load(code, lent, device, backend)
        return {"has_model": has_model, "facts": self.program.facts()}

    def do_init(
        self,
        header: values.Header,
        seed: int,
        odd_constants: bool,
        move: dict[str, Any] | None = None,
        fds: Sequence[int] = (),
    ) -> dict[str, Any]:
        """Make ModelNew. `odd_constants`: weights that are the same everywhere begin with other values. `move`: the fields of
        a Move."""
        program = self.program
        init_inputs = program.exchange.receive(header, fds)
        seed_generators(seed, program.accelerator.device)
        moved = Move(**move) if move else None
        with odd_weights() if odd_constants else moving(moved) if moved else contextlib.nullcontext():
            program.make(init_inputs)
        if odd_constants or moved:
            program.made = {}  # other values are put in by operators, too
        shapes = {name: list(tensor.shape) for name, tensor in program.state().items()}
        reply = {"state": shapes, "facts": program.facts()}
        if moved:
            with program.accelerator.honest():
                reply |= dataclasses.asdict(move_all(program.model, moved))
            program.accelerator.settle()
        return reply

    def do_report(self) -> dict[str, Any]:
        """What was seen."""
        return {"facts": self.program.facts()}

    def do_order(self, order: int, seed: int, kernel: str) -> dict[str, Any]:
        """Choose the order in which the CPU back end's threads take turns."""
        if (runtime := CpuRuntime.loaded()) is not None:
            runtime.set_order(Order(order), seed, kernel)
        return {}

    def do_guard(self, on: bool) -> dict[str, Any]:
        """Memory that is made from here on has guards at its ends (CPU back end)."""
        if (runtime := CpuRuntime.loaded()) is not None:
            runtime.guard_memory(on)
        return {}

    def do_steps(self) -> dict[str, Any]:
        """How many steps its extensions have taken, where they were built to count them (CPU back end)."""
        runtime = CpuRuntime.loaded()
        return {"taken": runtime.steps_taken() if runtime is not None else [0] * STEP_CLASSES}

    # ---- its values ----

    def do_weights(self, header: values.Header, fds: Sequence[int] = ()) -> dict[str, Any]:
        """Load a state into the model."""
        program = self.program
        program.load_weights(program.exchange.receive(header, fds))
        return {}

    def do_jitter(self, seed: int) -> dict[str, Any]:
        """Other weights, with the signs of the old ones, so that none is 0 or 1 everywhere: then it would change nothing."""
        program = self.program
        with program.accelerator.honest(), torch.no_grad():
            for index, tensor in enumerate(probes.state_of(program.model)):
                if tensor.is_floating_point():
                    tensor.copy_(varied(tensor, seed + index))
        program.accelerator.settle()
        return {}

    def do_inputs(
        self,
        header: values.Header,
        slot: int,
        strides: Strides | None = None,
        within: bool = False,
        fds: Sequence[int] = (),
    ) -> dict[str, Any]:
        """New inputs, in memory of their own, or `within` larger memory."""
        program = self.program
        if values.outline(header).n_bytes > _NEVER_TWICE_BYTES:
            program.inputs.pop(slot, None)
            program.outputs = None
        inputs = program.exchange.receive(header, fds)
        with program.accelerator.honest():
            inputs = inputs if strides is None else relaid(inputs, strides)
            program.inputs[slot] = surrounded(inputs) if within else inputs
        program.accelerator.settle()
        return {}

    def do_refill(self, header: values.Header, slot: int, fds: Sequence[int] = ()) -> dict[str, Any]:
        """New values in the memory of the old inputs: same addresses, other content."""
        program = self.program
        program.inputs[slot] = refilled(program.inputs[slot], program.exchange.receive(header, fds))
        program.accelerator.settle()
        return {}

    def do_forget(self) -> dict[str, Any]:
        """Drop all inputs and outputs."""
        program = self.program
        program.inputs.clear()
        program.outputs = None
        program.exchange.withdraw()
        if program.accelerator.cuda is not None:
            torch.cuda.empty_cache()
        return {}

    def do_offer_inputs(self, slot: int) -> dict[str, Any]:
        """Let the grader fetch the inputs."""
        return self.program.exchange.offer(list(self.program.inputs[slot]))

    def do_offer_state(self) -> dict[str, Any]:
        """Let the grader fetch the model's state."""
        return self.program.exchange.offer(self.program.state())

    def do_offer_outputs(self) -> dict[str, Any]:
        """Let the grader fetch the last outputs, as they are now."""
        return self.program.exchange.offer(self.program.outputs)

    def do_fetch(self, size: int, fds: list[int]) -> dict[str, Any]:
        """Write what was offered last into the grader's buffer."""
        self.program.exchange.hand_over(fds[0], size)
        return {}
