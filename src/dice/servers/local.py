"""A vLLM of our own: started for one stage, stopped with it, also when the stage is killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

from openai import DefaultHttpxClient, OpenAI, OpenAIError

from dice.errors import DiceError, HarnessError
from dice.servers.config import LocalServer

_POLL_S = 0.2
_STOP_S = 60.0


def found_command(local: LocalServer) -> list[str]:
    """The command by its full path. Raises DiceError where there is none."""
    path = shutil.which(local.command[0])
    if path is None:
        raise DiceError(
            f"'{local.command[0]}' is not installed here: install vLLM in an environment of its own "
            "(python -m venv vllm && vllm/bin/pip install vllm) and name it (--config vllm=vllm/bin/vllm), "
            "or leave its rows out (--config local_rows=false)."
        )
    return [path, *local.command[1:]]


@contextlib.contextmanager
def running(local: LocalServer, model: str) -> Iterator[str]:
    """The server's base URL, while it runs; `model` is its name in requests. What it prints goes to stderr.

    Raises DiceError where the command is not there, HarnessError where it ends before it answers.
    """
    command = found_command(local)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    command += ["serve", local.checkpoint, "--served-model-name", model, "--host", "127.0.0.1", "--port", str(port)]
    # Linux ends it when this process dies, however that happens
    tied = ["setpriv", "--pdeathsig", "TERM", "--", *command, *local.arguments]
    process = subprocess.Popen(tied, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True)
    try:
        _await(process, url, model)
        yield url
    finally:
        _stop(process)


def _await(process: subprocess.Popen[bytes], url: str, model: str) -> None:
    """Until the server lists the model: loading the weights takes minutes."""
    with OpenAI(
        api_key="none", base_url=url, max_retries=0, timeout=10, http_client=DefaultHttpxClient(trust_env=False)
    ) as client:
        while True:
            if (code := process.poll()) is not None:
                raise HarnessError(
                    f"the server for {model} ended with code {code} before it answered; its log says why."
                )
            with contextlib.suppress(OpenAIError):
                if model in {one.id for one in client.models.list()}:
                    return
            time.sleep(_POLL_S)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and all that it started."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal_number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # workers that outlived it
