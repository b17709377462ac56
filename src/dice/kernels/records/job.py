"""A candidate to verify, the limits under which it runs, and how it is judged."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from dice.config import stage_config
from dice.kernels.records.verdict import Protocol
from dice.manifest import sha256_text

PROTOCOLS: dict[str, tuple[Protocol, ...]] = {
    "paper": ("paper",),
    "strict": ("strict",),
    "robust": ("robust",),
    "both": ("paper", "strict"),
    "all": ("paper", "strict", "robust"),
}
"""What `--protocol` may say."""
LENT: tuple[Protocol, ...] = ("paper", "robust")
"""Protocols under which a candidate is lent names of the reference's module."""


class Job(BaseModel):
    """A candidate to verify. `code` is None when no code could be extracted from the answer (`no_code_reason`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    problem_id: str
    problem_code: str
    sample: int
    code: str | None
    no_code_reason: str = ""

    @property
    def code_sha256(self) -> str:
        """sha256 of the candidate's text, hex."""
        return sha256_text(self.code or "")

    @property
    def problem_sha256(self) -> str:
        """sha256 of the problem's text, hex."""
        return sha256_text(self.problem_code)


@stage_config
class Limits:
    """What a candidate may use."""

    import_timeout_s: float = Field(default=120.0, gt=0)
    """Wall seconds for importing the candidate, builds not counted."""
    build_timeout_s: float = Field(default=300.0, gt=0)
    """Wall seconds for all builds of one candidate."""
    forward_timeout_s: float = Field(default=60.0, gt=0)
    """Wall seconds for one call of forward, synchronisation included."""
    total_timeout_s: float = Field(default=600.0, gt=0)
    """Wall seconds for the candidate's process as a whole; builds, waiting for the GPU and drawing inputs are not counted."""
    memory_gib: float = Field(default=16.0, gt=0)
    """Host memory of the candidate's processes together, beyond the inputs and outputs."""
    processes: int = Field(default=256, ge=2)
    """Processes and threads of the candidate together; more than half as many processes are taken for a fork bomb."""
    file_gib: float = Field(default=2.0, gt=0)
    """Largest file, and the scratch folder as a whole."""


@stage_config
class Judging:
    """How correctness and speed are judged."""

    protocols: tuple[Protocol, ...] = Field(default=("paper",), min_length=1)
    """Protocols to report; one run of the candidate serves `paper` and `strict`, another one `robust`."""
    lend_names: bool = True
    """Under `paper` and `robust`, a candidate finds the names of the reference's module that it does not define, as in
    KernelBench."""
    explain: bool = False
    """Say more to the author of one kernel: where values are wrong, data races behind right ones (`cpu`), the work of a call,
    what kernels use of the GPU. It takes time, and the verdict's row grows."""
    seed: int | None = None
    """Seed of inputs and weights; None: a secret one for each candidate. Only `robust` records its seed, after the run."""
    conditions: tuple[str, ...] = ()
    """Conditions that `robust` tries, by name; none: all. The inputs as the problem draws them are always tried first."""
    first_break: bool = False
    """`robust` ends at the first condition that breaks a kernel: its status is the same, and costs less."""
    correctness_trials: int = Field(default=5, ge=1)
    """Fresh inputs per candidate (paper A.4: 5; the released RL reward: 1)."""
    measure_time: bool = True
    """Time candidate and reference; ignored by the CPU back end, which reports no speed."""
    timing_trials: int = Field(default=100, ge=1)
    """Timed calls under the paper protocol, after `warmup_trials`."""
    warmup_trials: int = Field(default=3, ge=0)
    """Untimed calls before timing."""
    strict_rounds: int = Field(default=40, ge=1)
    """ABBA rounds of the strict protocol; each gives two candidate and two reference times."""
    compile_baseline: bool = False
    """Also time torch.compile of the reference (strict protocol)."""
