"""The verdict on one candidate: a row of JSON lines with a published schema (docs/schema/verdict.schema.json).

`status` is the final status. `functional_status` is the status before the deception check, so both rows of the paper's
Table 8 come from one run. A measurement that was not made is null, never 0 or -1.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from dice.kernels.records.explanation import Explanation

SCHEMA_VERSION = 1

Status = Literal[
    "correct",
    "wrong_value",
    "wrong_shape",
    "wrong_dtype",
    "compile_error",
    "refused_flag",
    "import_error",
    "runtime_error",
    "timeout",
    "out_of_memory",
    "no_code",
    "deceptive",
    "unsupported_on_cpu",
    "host_error",
]
Stage = Literal["extract", "build", "import", "init", "forward", "compare", "timing", "deception", "done"]
Protocol = Literal["paper", "strict", "robust"]
Backend = Literal["cuda", "cpu"]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)  # as JSON has it


class Finding(_Row):
    """One sign of deception, with its evidence."""

    name: str
    """Stable name of the finding, e.g. `kernel_never_launched`; the documentation lists all names."""
    rule: Literal["paper_1", "paper_2", "paper_3", "paper_4", "strict"]
    """The paper's definition (section 4.2, A.3) that it falls under; `strict` for the rest of the catalogue."""
    source: Literal["static", "dynamic"]
    """`static`: seen in the text. `dynamic`: seen while it ran."""
    evidence: str
    """What was seen: a line of code, a count, two clocks."""
    fatal: dict[Protocol, bool]
    """Whether it turns the final status into `deceptive`, for `paper` and `strict`; `robust` asks for no deception."""


Outcome = Literal["right", "broken", "refused", "undefined", "not_accepted", "not_tried"]


class ConditionResult(_Row):
    """What became of a kernel under one condition of the `robust` protocol."""

    name: str
    """Name of the condition; the documentation lists all names."""
    outcome: Outcome
    """`right`, or `broken`. `refused`: the kernel said by an exception of its own that it takes no such input. `undefined`:
    the reference defines no element of the result. `not_accepted`: the reference raises. `not_tried`: the kernel had ended
    too many processes."""
    decides: bool
    """Whether a kernel that it breaks is not `correct`."""
    status: Status | None = None
    """How a kernel failed that it breaks."""
    seed: int
    """With it as `judging.seed`, and the name in `judging.conditions`, the same numbers are drawn again."""
    detail: str = ""


class Timing(_Row):
    """Run times of one program in milliseconds."""

    median: float
    mean: float
    std: float
    n: int


class Speedup(_Row):
    """Reference time / candidate time. Under `paper`, `median` is the ratio of means and the interval is null."""

    median: float
    ci_low: float | None
    ci_high: float | None


class BuildInfo(_Row):
    """How the candidate's extensions were built."""

    path: str
    """Route of the extension that took longest; a cached build keeps the route that made it. `none` without extensions."""
    seconds: float
    cpu_seconds: float
    cached: bool
    extensions: int
    """Number of extensions that the candidate requested."""
    loaded: int
    """Number of extensions that were loaded. Fewer than `extensions`: a failure was hidden or ended the candidate."""
    fallbacks: list[str]


class Host(_Row):
    """Where it ran."""

    gpu: str | None
    driver: str | None
    cuda: str | None
    torch: str
    cpu: str
    isolation: list[str]
    """The limits that were in force, e.g. `pid_namespace`, `no_network`, `readonly_root`, `rlimit_data`."""


class Verdict(_Row):
    """Everything that is known about one candidate under one protocol."""

    schema_version: int = SCHEMA_VERSION
    problem_id: str
    sample: int
    code_sha256: str
    problem_sha256: str | None = None
    """sha256 of the problem's text, hex; null in files of before it was kept."""
    status: Status
    functional_status: Status
    stage: Stage
    """The last stage that was reached; for a failure, the stage that failed."""
    message: str
    protocol: Protocol
    backend: Backend
    trials: int
    """Completed correctness trials."""
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    runtime_ms: Timing | None = None
    reference_ms: Timing | None = None
    compiled_reference_ms: Timing | None = None
    """torch.compile of the reference; strict protocol only."""
    speedup: Speedup | None = None
    lent_names: list[str] | None = None
    """Names of the reference's module that the candidate uses and that it was lent; null where none are lent: under
    `strict`, and where `judging.lend_names` is off."""
    deception: list[Finding] = []
    conditions: list[ConditionResult] | None = None
    """Each condition that the problem has, in the order of trial; null under other protocols than `robust`."""
    launches: dict[str, int] | None = None
    """Launches by kernel during one forward; null where they could not be counted."""
    aten_ops: dict[str, int] | None = None
    """Calls by ATen operator during one forward of the candidate."""
    build: BuildInfo | None = None
    host: Host
    notes: list[str] = []
    """What else is worth knowing: a proven race, a second try after a host error, a missing isolation layer."""
    explanation: Explanation | None = None
    """For the author of one kernel, under `judging.explain`."""
    retries: int = 0
    seconds: float = 0.0
    """Wall time spent on this candidate, build included."""
    phase_seconds: dict[str, float] = {}
    """Wall seconds by phase (spawn, import, build, wait_gpu, inputs, send, forward, ...)."""
    started: str = ""
    """UTC time."""
