"""Messages between two processes, one of which is hostile."""

from __future__ import annotations

import json
import math
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from dice.kernels.sandbox.channel import (
    MAX_MESSAGE,
    Channel,
    ChannelClosed,
    ChannelGarbage,
    ChannelTimeout,
    channel_pair,
)

PAST = -math.inf


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = channel_pair()
    with theirs:
        yield ours, theirs
    ours.close()


def framed(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def test_messages_arrive_whole_and_in_order(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    other = Channel(theirs)
    big = {"text": "é\n" * 500_000, "numbers": [1, 2.5, None, True]}
    sender = threading.Thread(target=lambda: [other.send(message) for message in ({"n": 1}, big, {"n": 2})])
    sender.start()
    assert [ours.receive()[0] for _ in range(3)] == [{"n": 1}, big, {"n": 2}]
    sender.join()
    ours.send({"back": [{}]})
    assert other.receive() == ({"back": [{}]}, [])


def test_a_message_in_parts_is_one_message(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    data = framed(b'{"a": 1}') + framed(b'{"b": 2}')
    for byte in data[:-1]:
        theirs.send(bytes([byte]))
    assert ours.receive()[0] == {"a": 1}
    with pytest.raises(ChannelTimeout):
        ours.receive(PAST)


def test_what_is_no_message(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    theirs.send(framed(b"[1]"))
    with pytest.raises(ChannelGarbage):
        ours.receive()


def test_a_length_is_refused_before_anything_is_read(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    theirs.send(struct.pack(">I", MAX_MESSAGE + 1))
    with pytest.raises(ChannelGarbage, match=f"announces {MAX_MESSAGE + 1} bytes"):
        ours.receive()


@pytest.mark.parametrize("sent", [b"", b"\0\0", framed(b'{"a": 1}')[:-1]])
def test_an_end_in_the_middle_is_an_end(ends: tuple[Channel, socket.socket], sent: bytes) -> None:
    ours, theirs = ends
    theirs.send(sent)
    theirs.close()
    with pytest.raises(ChannelClosed):
        ours.receive()
    with pytest.raises(ChannelClosed):
        ours.send({"a": 1})


def test_every_wait_has_a_deadline_and_is_watched(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    with pytest.raises(ChannelTimeout):
        ours.receive(PAST)
    with pytest.raises(ChannelTimeout):  # nobody reads, and the socket's buffer is full
        ours.send({"a": "x" * (1 << 24)}, deadline=time.monotonic() + 0.01)

    class Enough(Exception):
        pass

    calls = []

    def watch() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise Enough

    with pytest.raises(Enough):
        Channel(theirs, poll_s=0.001).receive(watch=watch)
    assert len(calls) == 3


def test_what_cannot_be_sent_is_refused_at_once(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    with pytest.raises(ValueError, match="a message of"):
        ours.send({"a": "x" * MAX_MESSAGE})
    with pytest.raises(ValueError, match="JSON"):
        ours.send({"a": math.nan})
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)


def test_descriptors_go_to_the_end_that_takes_them(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    reading, writing = os.pipe()
    ours.send({"fds": 1}, [writing])
    os.close(writing)
    message, (received,) = Channel(theirs, accept_fds=True).receive()
    assert message == {"fds": 1}
    os.write(received, b"through")
    os.close(received)
    assert os.read(reading, 10) == b"through"
    assert os.read(reading, 10) == b""  # no copy of the writing end is left
    os.close(reading)


def test_the_trusted_end_takes_no_descriptors(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    reading, writing = os.pipe()
    Channel(theirs).send({"fds": 1}, [writing])
    os.close(writing)
    assert ours.receive() == ({"fds": 1}, [])
    assert os.read(reading, 1) == b""
    os.close(reading)


def test_descriptors_of_a_bad_message_are_closed(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    reading, writing = os.pipe()
    socket.send_fds(theirs, [framed(json.dumps([1]).encode())], [writing])
    os.close(writing)
    taking = Channel(socket.socket(fileno=os.dup(ours.fd)), accept_fds=True)
    with pytest.raises(ChannelGarbage):
        taking.receive()
    assert os.read(reading, 1) == b""
    os.close(reading)
    taking.close()
