"""The verdicts of a run on disk, while it goes on and when it is finished.

`OUT.partial` is an append-only journal: its first line names the settings, each further line is one verdict. `OUT` is
the finished file, sorted. A candidate is done when every protocol's verdict on its text and its problem's text exists
and none is a `host_error`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dice.errors import DiceError
from dice.jsonl import Journal, read_jsonl, read_objects, valid_row, write_jsonl
from dice.kernels.records.job import Job
from dice.kernels.records.verdict import Verdict
from dice.manifest import read_manifest

Key = tuple[str, int, str, str | None]


def _key(item: Job | Verdict) -> Key:
    # With the problem's text: its id stays when the problem is edited, and the old verdict is on another question.
    return item.problem_id, item.sample, item.code_sha256, item.problem_sha256


class VerdictStore:
    """Verdicts of one output file under one set of settings (`identity`, a hash; it is in the manifest's `extra`)."""

    def __init__(self, out: str | Path, identity: str, n_protocols: int) -> None:
        self.out = Path(out)
        self.partial = self.out.with_name(self.out.name + ".partial")
        self.identity = identity
        self.n_protocols = n_protocols
        self._groups: dict[Key, list[Verdict]] = {}
        self._journal: Journal | None = None
        for verdict in self._read_finished() + self._read_partial():
            self._remember(verdict)

    def _remember(self, verdict: Verdict) -> None:
        group = self._groups.setdefault(_key(verdict), [])
        group[:] = [other for other in group if other.protocol != verdict.protocol] + [verdict]

    def _read_finished(self) -> list[Verdict]:
        if not self.out.exists():
            return []
        manifest = read_manifest(self.out)
        if manifest is None and self.partial.exists():
            return []  # ended before the manifest was written: the journal still holds every verdict
        if manifest is None or manifest.extra.get("settings") != self.identity:
            raise DiceError(f"{self.out}: was made with other settings; choose another --out, or delete the file.")
        return list(read_jsonl(self.out, Verdict))

    def _read_partial(self) -> list[Verdict]:
        if not self.partial.exists():
            return []
        Journal(self.partial).close()  # cuts a torn last line
        rows = list(read_objects(self.partial))
        if rows and rows[0][1] != {"settings": self.identity}:
            raise DiceError(
                f"{self.partial}: was begun with other settings, or by a version of dice that has others; delete the file to "
                "begin anew."
            )
        return [valid_row(value, Verdict, f"{self.partial}:{number}") for number, value in rows[1:]]

    def missing(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs that still need a verdict; host errors are tried again."""
        return [job for job in jobs if not self._is_done(self._groups.get(_key(job), []))]

    def _is_done(self, group: list[Verdict]) -> bool:
        return len(group) == self.n_protocols and all(verdict.status != "host_error" for verdict in group)

    def add(self, verdicts: list[Verdict]) -> None:
        """Append one candidate's verdicts durably."""
        if self._journal is None:
            self._journal = Journal(self.partial)
            if self.partial.stat().st_size == 0:
                self._journal.append({"settings": self.identity})
        for verdict in verdicts:
            self._journal.append(verdict)
            self._remember(verdict)

    def close(self) -> None:
        """Close the journal; what was added stays."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def finish(self, jobs: Sequence[Job]) -> list[Verdict]:
        """Write the finished file for `jobs`, sorted by problem, sample and protocol, and return its verdicts."""
        self.close()
        verdicts = [verdict for job in jobs for verdict in self._groups[_key(job)]]
        verdicts.sort(key=lambda verdict: (verdict.problem_id, verdict.sample, verdict.protocol))
        write_jsonl(self.out, verdicts)
        return verdicts

    def discard_journal(self) -> None:
        """Remove the journal once the finished file and its manifest are written."""
        self.partial.unlink(missing_ok=True)
