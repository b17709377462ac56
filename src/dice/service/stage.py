"""`dice serve`: the verifier as a service, over HTTP.

    dice serve --state runs/service --problems mini --backend cpu

It listens at once and accepts jobs; verdicts come when the pool is open, and `/health` says so. Kill it at any moment and
start it again with the same folder: what was accepted and has no verdict runs again. `STATE/url` says where it listens.
Tokens of its clients: `DICE_SERVICE_TOKENS` (dice.service.tokens).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from dice.config import config_from
from dice.errors import DiceError
from dice.jsonl import write_text
from dice.kernels.api import Problem, add_judging_options, judged_protocols, load_problems
from dice.service.app import make_app
from dice.service.dispatcher import Dispatcher
from dice.service.identity import identity
from dice.service.journal import JobJournal, job_journal
from dice.service.settings import ServeConfig
from dice.service.tokens import VARIABLE, Tokens

LOCAL = ("127.0.0.1", "::1", "localhost")
LAST_REPLIES_S = 3
"""Seconds that open requests have when the service ends."""


def problem_codes(problems: list[Problem]) -> dict[str, str]:
    """Code by name; `level1/19` names `level1/19_ReLU` too."""
    numbered = {f"level{problem.level}/{problem.number}": problem.code for problem in problems}
    return numbered | {problem.id: problem.code for problem in problems}


def check(config: ServeConfig, tokens: Tokens) -> None:
    """Raises DiceError for a service that is open to everybody, or that could verify nothing."""
    if config.host not in LOCAL and not tokens:
        raise DiceError(f"--host {config.host}: others can reach this address; set {VARIABLE}, or listen at 127.0.0.1.")
    if config.problems is None and not config.client_problems:
        raise DiceError("no problems: name them with --problems, or take those of clients with --client-problems.")


def listen(config: ServeConfig) -> socket.socket:
    """The open socket. Raises DiceError where it cannot be had."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        return socket.create_server((config.host, config.port), family=family, backlog=1024)
    except OSError as error:
        raise DiceError(f"--host {config.host} --port {config.port}: {error.strerror}; choose another.") from error


def address(config: ServeConfig, port: int) -> str:
    """The URL at which others find the service."""
    host = socket.gethostname() if config.host in ("0.0.0.0", "::") else config.host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Service:
    """One service from its settings to its end."""

    def __init__(self, config: ServeConfig, journal: JobJournal, tokens: Tokens) -> None:
        problems = load_problems(config.problems, config.backend) if config.problems else []
        self.dispatcher = Dispatcher(config, journal, problem_codes(problems), self._give_up)
        app = make_app(self.dispatcher, tokens, self._lifespan)
        settings = uvicorn.Config(
            app, log_level="warning", access_log=False, timeout_graceful_shutdown=LAST_REPLIES_S, timeout_keep_alive=120
        )
        self.server = uvicorn.Server(settings)

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        self.dispatcher.start()
        try:
            yield
        finally:
            await self.dispatcher.stop()

    def _give_up(self) -> None:
        self.server.should_exit = True

    def run(self, listening: socket.socket) -> None:
        """Serve until a signal comes. Raises DiceError or HarnessError when the service cannot go on."""
        self.server.run(sockets=[listening])
        if self.dispatcher.failure is not None:
            raise self.dispatcher.failure


def serve(config: ServeConfig, tokens: Tokens) -> None:
    """Run the service. Raises DiceError for what cannot be used, HarnessError for a machine that cannot do the work."""
    check(config, tokens)
    with job_journal(config.state, identity(config), config.keep_verdicts) as journal:
        service = Service(config, journal, tokens)
        with listen(config) as listening:
            url = address(config, listening.getsockname()[1])
            write_text(Path(config.state) / "url", url + "\n")
            waiting = f"; {len(journal.open)} jobs of before wait" if journal.open else ""
            print(f"dice serve: {url}, API page {url}/docs{waiting}", flush=True)
            service.run(listening)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice serve`."""
    add_judging_options(parser, ServeConfig, "state", "host", "port", "problems", "client_problems", "backend")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice serve`."""
    config = config_from(args, ServeConfig, judged_protocols(args))
    serve(config, Tokens(os.environ.get(VARIABLE, "")))
    return 0
