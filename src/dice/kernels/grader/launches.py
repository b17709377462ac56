"""The launches of a candidate, call by call, as the grader reads them in its ledger. Nothing tells the candidate which calls
are compared."""

from __future__ import annotations

from dice.kernels.records.evidence import RunEvidence
from dice.kernels.sandbox.launch_ledger import LaunchLedger, Reading
from dice.kernels.sandbox.replies import Facts


class Launches:
    """The ledger of one process, and the names of its kernels. What is wrong with the ledger becomes evidence."""

    def __init__(self, evidence: RunEvidence) -> None:
        self._evidence = evidence
        self._ledger = LaunchLedger()
        self._kernels: dict[int, str] = {}
        self.last = Reading()
        """The last reading."""

    @property
    def fd(self) -> int:
        """The ledger's page, for the process."""
        return self._ledger.fd

    def deal(self) -> None:
        """Before a request."""
        self._ledger.deal()

    def learn(self, facts: Facts) -> None:
        """Take the names of kernels that the process tells."""
        self._kernels |= {int(key, 16): name for key, name in facts.kernels.items()}

    def read(self) -> Reading:
        """After a request."""
        self.last = self._ledger.read(self._kernels)
        self._evidence.forged = self._evidence.forged or self.last.forged
        return self.last

    def close(self) -> None:
        """Give the page back."""
        self._ledger.close()
