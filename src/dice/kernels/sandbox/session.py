"""The grader's end of one candidate's process: start it, send requests, watch it, end it.

Every wait has a deadline and a watch on memory. A candidate that misbehaves is killed with all its processes, and the
reason becomes one `CandidateFailure`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from dice.errors import HarnessError
from dice.kernels.records.evidence import Access
from dice.kernels.records.verdict import Status
from dice.kernels.sandbox import gpu_buffer, process_tree, values
from dice.kernels.sandbox.channel import ChannelClosed, ChannelGarbage, ChannelTimeout, channel_pair
from dice.kernels.sandbox.fork_server import ForkServer
from dice.kernels.sandbox.isolation import SandboxSpec
from dice.kernels.sandbox.replies import (
    MOST_FACTS,
    CandidateError,
    Done,
    Facts,
    Failed,
    Offer,
    Reply,
    read_note,
    read_reply,
)
from dice.kernels.sandbox.shared_memory import SharedBuffer
from dice.kernels.sandbox.supervisor import await_ready

SETUP_TIMEOUT_S = 60.0
END_TIMEOUT_S = 20.0
_REPORT_TIMEOUT_S = 2.0
_WATCH_EVERY_S = 0.1
_MOST_NAMES = 64
"""Of child processes, kept for the evidence."""

AnswerBuild = Callable[[dict[str, Any]], tuple[dict[str, Any], int | None]]
"""Answers a request for a build: (reply, descriptor of the shared object). Runs on a thread."""


class CandidateFailure(Exception):
    """The candidate failed. `status` is the status of its verdict."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status: Status = status


class CandidateRaised(CandidateFailure):
    """The candidate's code raised. `error` has the details, `facts` the observations until then."""

    def __init__(self, status: Status, error: CandidateError, facts: Facts) -> None:
        super().__init__(status, error.sentence)
        self.error = error
        self.facts = facts


class LastSeconds(float):
    """A limit that is the rest of all the time that a candidate has, `in_all_s`."""

    def __new__(cls, seconds: float, in_all_s: float) -> LastSeconds:
        return super().__new__(cls, seconds)

    def __init__(self, seconds: float, in_all_s: float) -> None:
        self.in_all_s = in_all_s


class Session:
    """One candidate's process. `isolation`: layers in force; `missing`: those that this machine refused.

    `on_card`: both sides use one GPU, in whose memory large values cross.
    """

    def __init__(
        self,
        fork_server: ForkServer,
        spec: SandboxSpec,
        memory_bytes: int,
        answer_build: AnswerBuild | None = None,
        on_card: bool = False,
    ) -> None:
        self._memory_bytes = memory_bytes
        self._on_card = on_card
        self._processes = spec.processes
        self._answer_build = answer_build
        self._next_watch = 0.0
        self._output: SharedBuffer | None = None
        self._input: SharedBuffer | None = None
        self._kernel_kills = process_tree.kernel_kills()
        self._killed = False
        self._scratch: str | None = None
        self.build_s = 0.0
        self.not_frozen = ""
        self.child_processes: set[str] = set()
        self.noted: list[Access] = []
        """What the candidate did that was reported when it happened (`records.evidence.Access`)."""
        self._channel, theirs = channel_pair()
        self._status, status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, status:
            self._spawned = fork_server.spawn(spec.model_dump(), (theirs.fileno(), status.fileno()))
        try:
            ready = await_ready(self._status, SETUP_TIMEOUT_S)
        except HarnessError:
            self.close()
            raise
        self.isolation: list[str] = ready["isolation"]
        self.missing: list[str] = ready["missing"]
        if "scratch_quota" not in self.isolation:
            self._scratch = ready["scratch"]

    def _read_end(self) -> dict[str, Any] | None:
        """How the candidate ended, as the supervisor reports it; None where it says nothing."""
        self._status.settimeout(_REPORT_TIMEOUT_S)
        try:
            data = self._status.recv(1 << 18)
        except OSError:
            return None
        return json.loads(data) if data else None

    # ---- requests ----

    def ask(
        self, op: str, kind: type[Reply], timeout_s: float, /, fds: list[int] | None = None, **arguments: Any
    ) -> Reply:
        """Send one request and wait for its reply; builds that it asks for meanwhile are answered and not counted.

        Raises CandidateFailure.
        """
        deadline = time.monotonic() + timeout_s
        try:
            self._channel.send({"op": op, **arguments}, fds or [], deadline, self._watch)
            while True:
                message, _ = self._channel.receive(deadline, self._watch)
                if message.get("op") == "noted":
                    self._take_note(message)
                    continue
                if message.get("op") != "build":
                    return self._checked(read_reply(message, kind))
                begun = time.monotonic()
                self._build(message)
                spent_s = time.monotonic() - begun
                self.build_s += spent_s
                deadline += spent_s
        except ChannelTimeout:
            self.kill()
            message = f"no end after {timeout_s:g} s in '{op}'"
            if isinstance(timeout_s, LastSeconds):
                message = f"its {timeout_s.in_all_s:g} s in all were used up before '{op}' ended"
            raise CandidateFailure("timeout", message) from None
        except ChannelGarbage as error:
            self.kill()
            raise CandidateFailure("runtime_error", f"wrote into the verifier's channel: {error}") from None
        except ChannelClosed:
            raise self._why_it_ended() from None

    def _take_note(self, message: dict[str, Any]) -> None:
        self.noted.append(read_note(message))
        if len(self.noted) > MOST_FACTS:  # a flood would never let the deadline be seen
            raise ChannelGarbage(f"over {MOST_FACTS} notes")

    @staticmethod
    def _checked(reply: Reply | Failed) -> Reply:
        if not isinstance(reply, Failed):
            return reply
        error = reply.error
        if error.exit:
            error = error.model_copy(update={"type": "sys.exit"})
        raise CandidateRaised("out_of_memory" if error.out_of_memory else "runtime_error", error, reply.facts)

    def _build(self, message: dict[str, Any]) -> None:
        if self._answer_build is None:
            raise ChannelGarbage("asked for a build where none is offered")
        with ThreadPoolExecutor(1) as pool:
            future: Future[tuple[dict[str, Any], int | None]] = pool.submit(self._answer_build, message)
            try:
                while not future.done():
                    with contextlib.suppress(TimeoutError):
                        future.exception(timeout=0.1)
                    self._watch()
            except CandidateFailure:
                future.add_done_callback(_close_object)
                raise
            reply, fd = future.result()
        try:
            self._channel.send(reply, [] if fd is None else [fd], time.monotonic() + 60, self._watch)
        finally:
            if fd is not None:
                os.close(fd)

    # ---- values ----

    def send_value(self, op: str, kind: type[Reply], value: Any, timeout_s: float, **arguments: Any) -> Reply:
        """Give the candidate a value with a request. Raises UnsupportedValue or CandidateFailure."""
        header, tensors, size = values.lay_out(value)
        if not size:
            return self.ask(op, kind, timeout_s, header=header, **arguments)
        if self._on_card and size >= gpu_buffer.SHARED_ON_CARD_BYTES:
            with gpu_buffer.lent(size) as (buffer, fd):
                values.write(tensors, header, buffer.tensor)
                buffer.settle()
                return self.ask(op, kind, timeout_s, fds=[fd], header=header, **arguments)
        if self._input is None or self._input.n_bytes < size:
            self._input = self._replaced(self._input, size)
        values.write(tensors, header, self._input.tensor)
        return self.ask(op, kind, timeout_s, fds=[self._input.fd], header=header, **arguments)

    def fetch(self, offer: Offer, limit_bytes: int, timeout_s: float, device: torch.device) -> Any:
        """Copy a value that the candidate offers out of its reach, onto `device`.

        `limit_bytes`: of the whole value; nothing is copied of a larger one. Tensors that the candidate had on the CPU
        stay there. Raises CandidateFailure.
        """
        if offer.outline.value_bytes > limit_bytes:
            returned, limit = offer.outline.value_bytes / 2**30, limit_bytes / 2**30
            raise CandidateFailure("runtime_error", f"returned {returned:.2f} GiB of tensors, limit {limit:.2f} GiB")

        def place(view: torch.Tensor, kind: str) -> torch.Tensor:
            return view.to(device if kind == device.type else "cpu", copy=True)

        if self._on_card and "cuda" in offer.outline.places and offer.bytes >= gpu_buffer.SHARED_ON_CARD_BYTES:
            with gpu_buffer.lent(offer.bytes) as (buffer, fd):
                self.ask("fetch", Done, timeout_s, fds=[fd], size=offer.bytes)
                return values.read(offer.header, buffer.tensor, place)
        flat = torch.empty(0, dtype=torch.uint8)
        if offer.bytes:
            if self._output is None or self._output.n_bytes < offer.bytes:
                self._output = self._replaced(self._output, offer.bytes)
            self.ask("fetch", Done, timeout_s, fds=[self._output.fd], size=self._output.n_bytes)
            flat = self._output.tensor[: offer.bytes]
        return values.read(offer.header, flat, place)

    def _replaced(self, buffer: SharedBuffer | None, size: int) -> SharedBuffer:
        self._release(buffer)
        return SharedBuffer.create(size)

    @staticmethod
    def _release(buffer: SharedBuffer | None) -> None:
        if buffer is not None:
            buffer.close()

    # ---- watching and ending ----

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """No process of the candidate is scheduled in the block. Where one cannot be stopped, `not_frozen` says why."""
        stopped: list[int] = []
        if not self.not_frozen:
            try:
                stopped = process_tree.freeze(self._spawned.pid)
            except OSError as error:
                self.not_frozen = str(error)
        try:
            yield
        finally:
            process_tree.thaw(stopped)

    def threads(self) -> int:
        """Threads of all the candidate's processes."""
        return process_tree.threads(process_tree.descendants(self._spawned.pid))

    @property
    def alive(self) -> bool:
        """Whether the candidate has neither ended nor been killed."""
        return not self._killed

    def _watch(self) -> None:
        now = time.monotonic()
        if now < self._next_watch:
            return
        self._next_watch = now + _WATCH_EVERY_S
        below = process_tree.descendants(self._spawned.pid)
        if len(below) > 1 and len(self.child_processes) < _MOST_NAMES:
            self.child_processes.update(process_tree.names(below[1:])[:32])
        if len(below) > self._processes // 2:
            self.kill()  # a fork bomb: left to its time limit, it would take the cores from neighbours for so long
            most = f"processes and threads together may be {self._processes}"
            raise CandidateFailure("runtime_error", f"{len(below)} processes at one time; {most}")
        # Only now: to read the memory of a hundred processes that hold a CUDA context takes half a minute.
        values_bytes = sum(buffer.n_bytes for buffer in (self._input, self._output) if buffer is not None)
        used = process_tree.memory_bytes(below, self._memory_bytes + values_bytes) - values_bytes
        if used > self._memory_bytes:
            self.kill()
            limit = self._memory_bytes / 2**30
            raise CandidateFailure("out_of_memory", f"used {used / 2**30:.1f} GiB of memory, limit {limit:.1f} GiB")

    def _why_it_ended(self) -> CandidateFailure:
        """Why the candidate hung up, as its process 1 reports it. Raises HarnessError when process 1 was killed."""
        if self._killed:  # by us: its end was told to whoever asked before
            return CandidateFailure("runtime_error", "was asked again after its end")
        end = self._read_end()
        alive = not process_tree.ends(self._spawned.pidfd, 0)
        self.kill()
        if end is None and alive:
            return CandidateFailure("runtime_error", "closed the verifier's channel")
        if end is None:
            raise HarnessError("The candidate's supervisor was killed from outside.")
        said = _last_line(end.get("tail", ""))
        if end.get("signal") == signal.SIGKILL and process_tree.kernel_kills() > self._kernel_kills:
            return CandidateFailure("out_of_memory", "killed by the kernel when the machine ran out of memory")
        if "signal" in end:
            name = _signal_name(end["signal"])
            return CandidateFailure("runtime_error", f"the process was killed by {name}{said}")
        return CandidateFailure("runtime_error", f"the process ended with exit code {end.get('exit')}{said}")

    def kill(self) -> None:
        """End the candidate and everything below it, now. Safe to call again."""
        if self._killed:
            return
        self._killed = True
        if "pid_namespace" in getattr(self, "isolation", ["pid_namespace"]):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._spawned.pidfd, signal.SIGKILL)
        else:  # only process 1 knows what is below it: the hang-up tells it to clean up and leave
            self._status.close()

    def close(self) -> None:
        """End the candidate, wait until nothing of it is left, free the buffers. Raises HarnessError if it stays."""
        self.kill()
        self._channel.close()
        gone = process_tree.ends(self._spawned.pidfd, END_TIMEOUT_S)
        os.close(self._spawned.pidfd)
        self._status.close()
        self._release(self._input)
        self._release(self._output)
        self._input = self._output = None
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        if not gone:
            raise HarnessError(f"The candidate's process {self._spawned.pid} cannot be ended (stuck in a driver?).")


def _close_object(build: Future[tuple[dict[str, Any], int | None]]) -> None:
    """Close the descriptor of an object that was built for a candidate which has ended meanwhile."""
    if build.exception() is None and (fd := build.result()[1]) is not None:
        os.close(fd)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(tail: str) -> str:
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    return f" ({lines[-1][:300]})" if lines else ""
