"""Which layers of isolation candidates get on this machine, asked of one that does nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket

from dice.kernels.sandbox.fork_server import ForkServer
from dice.kernels.sandbox.isolation import SandboxSpec
from dice.kernels.sandbox.process_tree import ends
from dice.kernels.sandbox.supervisor import await_ready

_TIMEOUT_S = 60.0


def candidate_layers(server: ForkServer, gpu: str) -> tuple[list[str], list[str]]:
    """(layers in force, those that this machine refuses with the reason). `gpu`: what a candidate may see, as for
    CUDA_VISIBLE_DEVICES. Raises HarnessError."""
    mib = 1 << 20
    spec = SandboxSpec(
        scratch_bytes=mib,
        file_bytes=mib,
        processes=16,
        data_bytes=1 << 30,
        cuda_visible_devices=gpu,
        threads=1,
    )
    channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    status, reports = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with contextlib.ExitStack() as end:
        with channel, status:
            with theirs, reports:
                spawned = server.spawn(spec.model_dump(), (theirs.fileno(), reports.fileno()))
            end.callback(os.close, spawned.pidfd)
            ready = await_ready(status, _TIMEOUT_S)
        ends(spawned.pidfd, _TIMEOUT_S)  # the hang-up has told it to
    if "scratch_quota" not in ready["isolation"]:
        shutil.rmtree(ready["scratch"], ignore_errors=True)
    return ready["isolation"], ready["missing"]
