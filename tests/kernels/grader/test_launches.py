"""Launches by call as the grader reads them, with the names that a process tells."""

from __future__ import annotations

import mmap
import struct

from dice.kernels.grader.launches import Launches
from dice.kernels.records.evidence import RunEvidence
from dice.kernels.sandbox.launch_ledger import PAGE_BYTES, mark_of, name_hash
from dice.kernels.sandbox.replies import Facts


def launch(page: mmap.mmap, name: bytes) -> None:
    """What a stub does."""
    (number,) = struct.unpack_from("=Q", page)
    (word,) = struct.unpack_from("=Q", page, 8 + 8 * number)
    struct.pack_into("=Q", page, 8 + 8 * number, mark_of(word, name_hash(name)))
    struct.pack_into("=Q", page, 0, number + 1)


def test_names_come_with_the_reply_and_forging_becomes_evidence() -> None:
    evidence = RunEvidence(backend="cpu", reached="forward")
    launches = Launches(evidence)
    page = mmap.mmap(launches.fd, PAGE_BYTES)
    launch(page, b"_Z1kPf")
    launches.learn(Facts(kernels={f"{name_hash(b'_Z1kPf'):016x}": "k"}))
    assert launches.read().launches == {"k": 1}
    launches.deal()
    assert launches.read().launches == {}
    assert evidence.forged == ""
    launch(page, b"no kernel of its own")
    launches.read()
    assert "of a kernel that no extension has" in evidence.forged
    launches.deal()
    assert launches.read().forged == ""
    assert evidence.forged  # it stays
    launches.close()
