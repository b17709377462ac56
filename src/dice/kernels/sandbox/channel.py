"""Messages between two processes: length-prefixed JSON objects over a Unix socket, file descriptors beside them.

The trusted end treats the other as hostile: sizes are bounded, every wait has a deadline, and descriptors sent by the
other end are never accepted (the kernel drops them).
"""

from __future__ import annotations

import array
import json
import math
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

from dice.kernels.sandbox.messages import Malformed, parse_message

MAX_MESSAGE = 64 << 20
_LENGTH = struct.Struct(">I")
_MAX_FDS = 4


class ChannelClosed(Exception):
    """The other end is gone."""


class ChannelTimeout(Exception):
    """The deadline passed first."""


class ChannelGarbage(Exception):
    """What came is not a message."""


class Channel:
    """One end. `watch`, where given, is called about every `poll_s` seconds of waiting and may raise."""

    def __init__(self, sock: socket.socket, accept_fds: bool = False, poll_s: float = 0.05) -> None:
        self._socket = sock
        self._accept_fds = accept_fds
        self._poll_s = poll_s
        sock.setblocking(False)

    @property
    def fd(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    def send(
        self,
        message: dict[str, Any],
        fds: Sequence[int] = (),
        deadline: float = math.inf,
        watch: Callable[[], None] | None = None,
    ) -> None:
        """Send one message, and duplicates of `fds` with its first byte."""
        data = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
        if len(data) > MAX_MESSAGE:
            raise ValueError(f"a message of {len(data)} bytes")
        rest = memoryview(_LENGTH.pack(len(data)) + data)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        while rest:
            try:
                rest = rest[self._socket.sendmsg([rest], ancillary) :]
                ancillary = []
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline, watch)
            except OSError as error:
                raise ChannelClosed(str(error)) from error

    def receive(
        self, deadline: float = math.inf, watch: Callable[[], None] | None = None
    ) -> tuple[dict[str, Any], list[int]]:
        """Next message, cleaned by `parse_message`, and the descriptors that came with it (the caller's to close).

        Raises ChannelClosed, ChannelTimeout (`deadline` is on time.monotonic's clock) or ChannelGarbage.
        """
        fds: list[int] = []
        try:
            (length,) = _LENGTH.unpack(self._read(_LENGTH.size, fds, deadline, watch))
            if length > MAX_MESSAGE:
                raise ChannelGarbage(f"announces {length} bytes")
            try:
                return parse_message(self._read(length, fds, deadline, watch)), fds
            except Malformed as error:
                raise ChannelGarbage(str(error)) from error
        except BaseException:
            for fd in fds:
                os.close(fd)
            raise

    def _read(self, n_bytes: int, fds: list[int], deadline: float, watch: Callable[[], None] | None) -> bytes:
        data = bytearray()
        room = socket.CMSG_SPACE(_MAX_FDS * array.array("i").itemsize) if self._accept_fds else 0
        while len(data) < n_bytes:
            try:
                part, ancillary, _, _ = self._socket.recvmsg(min(n_bytes - len(data), 1 << 20), room)
            except BlockingIOError:
                self._wait(select.POLLIN, deadline, watch)
                continue
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            for level, kind, raw in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    received = array.array("i")
                    received.frombytes(raw[: len(raw) - len(raw) % received.itemsize])
                    fds.extend(received)
            if not part:
                raise ChannelClosed("end of stream")
            data += part
        return bytes(data)

    def _wait(self, event: int, deadline: float, watch: Callable[[], None] | None) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise ChannelTimeout
            wait_s = min(left_s, self._poll_s) if watch else min(left_s, 3600.0)
            if poll.poll(math.ceil(wait_s * 1000)):
                return
            if watch:
                watch()

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


def channel_pair() -> tuple[Channel, socket.socket]:
    """(the trusted end, the socket to hand to the other process)."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Channel(ours), theirs
