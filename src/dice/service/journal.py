"""The jobs of a service on disk: what was accepted, and what came of it.

`jobs.jsonl` is append-only; each row is on disk before anybody is told of it. Its first row names the service's
identity. After a kill -9, what was accepted and has no verdict is open again. The file is written anew, without what is
settled or forgotten, when it is opened and when it has grown by as many verdicts as are kept.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from dice.errors import DiceError, HarnessError
from dice.jsonl import Journal, read_objects, to_line, valid_row, write_jsonl
from dice.kernels.api import Job, Verdict
from dice.locks import only_holder

FILE = "jobs.jsonl"


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Accepted(_Row):
    """A job that was accepted, with the clients that want it."""

    event: Literal["accepted"] = "accepted"
    id: str
    clients: list[str]
    priority: int
    job: Job


class Joined(_Row):
    """Another client, or a higher priority, of a job that was accepted before."""

    event: Literal["joined"] = "joined"
    id: str
    client: str
    priority: int


class Left(_Row):
    """A client that wants the job no more. The last one to leave ends a job that has not begun."""

    event: Literal["left"] = "left"
    id: str
    client: str


class Finished(_Row):
    """The verdicts of a job."""

    event: Literal["finished"] = "finished"
    id: str
    verdicts: list[Verdict]


Event = Accepted | Joined | Left | Finished
_ROWS: dict[str, type[Event]] = {row.model_fields["event"].default: row for row in get_args(Event)}


class JobJournal:
    """Open and finished jobs of one service. `open`: those without a verdict, in the order in which they came.

    Raises DiceError where the folder holds open jobs of another identity, or a row that cannot be read.
    """

    def __init__(self, folder: str | Path, identity: str, keep: int) -> None:
        self.path = Path(folder) / FILE
        self.identity, self.keep = identity, keep
        self.open: dict[str, Accepted] = {}
        self._done: dict[str, str] = {}
        self._grown = 0
        self._recover()
        self._journal = self._rewritten()

    def _recover(self) -> None:
        Journal(self.path).close()  # cuts a torn last line
        rows = list(read_objects(self.path))
        for number, value in rows[1:]:
            where = f"{self.path}:{number}"
            event = value.get("event")
            kind = _ROWS.get(event) if isinstance(event, str) else None
            if kind is None:
                raise DiceError(f"{where}: no event that this version knows; choose another folder for --state.")
            self._apply(valid_row(value, kind, where))
        if rows and rows[0][1] != self._head():
            if self.open:
                raise DiceError(
                    f"{self.path}: {len(self.open)} accepted jobs wait for verdicts of other settings, versions or GPUs; "
                    "let that service finish them, or choose another folder for --state."
                )
            self._done.clear()

    def _head(self) -> dict[str, Any]:
        return {"identity": self.identity}

    def _rewritten(self) -> Journal:
        """Write the file anew with what is still worth knowing, and open it."""
        finished = (json.loads(line) for line in self._done.values())
        write_jsonl(self.path, itertools.chain([self._head()], self.open.values(), finished))
        self._grown = 0
        return Journal(self.path)

    def _apply(self, event: Event) -> None:
        match event:
            case Accepted():
                self.open[event.id] = event
                self._done.pop(event.id, None)  # a host error, asked again
            case Joined(id=id) if id in self.open:
                accepted = self.open[id]
                clients = [*accepted.clients, *({event.client} - {*accepted.clients})]
                priority = max(accepted.priority, event.priority)
                self.open[id] = accepted.model_copy(update={"clients": clients, "priority": priority})
            case Left(id=id) if id in self.open:
                clients = [client for client in self.open[id].clients if client != event.client]
                self.open[id] = self.open[id].model_copy(update={"clients": clients})
                if not clients:
                    del self.open[id]
            case Finished(id=id):
                self.open.pop(id, None)
                self._done.pop(id, None)
                self._done[id] = to_line(event)
                while len(self._done) > self.keep:
                    self._done.pop(next(iter(self._done)))

    def add(self, *events: Event) -> None:
        """Put events on disk, then take them in. Raises HarnessError for a disk that does not take them."""
        try:
            self._journal.append(*events)
            for event in events:
                self._apply(event)
                self._grown += isinstance(event, Finished)
            if self._grown > self.keep:
                self._journal.close()
                self._journal = self._rewritten()
        except OSError as error:
            raise HarnessError(f"{self.path}: {error.strerror}; what was told so far is on disk.") from error

    def verdicts(self, id: str) -> list[Verdict] | None:
        """The verdicts of a finished job; None for any other."""
        line = self._done.get(id)
        return None if line is None else Finished.model_validate(json.loads(line)).verdicts

    def close(self) -> None:
        """Close the file."""
        self._journal.close()


@contextlib.contextmanager
def job_journal(folder: str | Path, identity: str, keep: int) -> Iterator[JobJournal]:
    """The journal of `folder`, which nobody else may use meanwhile. Raises DiceError where somebody does."""
    taken = f"{folder}: another service uses this folder; choose another."
    with only_holder(Path(folder) / "lock", taken), contextlib.closing(JobJournal(folder, identity, keep)) as journal:
        yield journal
