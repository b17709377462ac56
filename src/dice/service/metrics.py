"""What a service counts, in Prometheus's text format."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000)


class Metrics:
    """The counters of one service."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.submitted = Counter("dice_submitted", "Candidates that were asked for", ["answered"], registry=registry)
        """`new`, `joined` a job that was open, `known`: its verdicts were there."""
        self.refused = Counter("dice_refused", "Requests that were refused", ["code"], registry=registry)
        self.verdicts = Counter("dice_verdicts", "Finished jobs", ["status"], registry=registry)
        self.verify_s = Histogram(
            "dice_verify_seconds", "Seconds spent on a job, waiting left out", buckets=SECONDS, registry=registry
        )
        self.waiting = Gauge("dice_jobs_waiting", "Accepted jobs that have not begun", registry=registry)
        self.running = Gauge("dice_jobs_running", "Jobs in the pool", registry=registry)
        self.pools = Counter("dice_pools_opened", "Times that the pool was opened", registry=registry)

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self._registry)
