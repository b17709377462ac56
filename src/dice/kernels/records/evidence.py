"""What was observed while one candidate ran: plain data, filled by the executor, judged by `dice.kernels.checks`.

The split is: `candidate.probes` gathers inside the candidate's process, the executor adds what the trusted side saw
(comparisons, clocks, processes), `deception` alone decides what it means. Every field may be absent: None (or an empty
list where nothing could be listed) means "not observed" and never counts against the candidate.

What comes from the candidate's own process can be forged by native code in it. So a finding may condemn on such facts,
but nothing is ever acquitted by them alone: values, clocks and process lists come from the trusted side.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from dice.kernels.records.extension import BuildStatus

Phase = Literal["import", "init", "forward", "timing"]
"""When it happened. `forward` covers every untimed call, `timing` the timed ones."""

ChangeKind = Literal["function", "flag", "module", "environment", "hook"]
"""`function`: a guarded callable is no longer the same object (or its code object was swapped);
`flag`: a torch global switch; `module`: a name in `sys.modules` was replaced or removed;
`environment`: an environment variable was set or removed; `hook`: a trace, profile, excepthook or signal handler."""

ProbeName = Literal[
    "same_pointer_new_content",
    "same_content_again",
    "unsampled_elements",
    "fresh_weights",
    "repeat_same_input",
    "without_launches",
    "handed_over",
]
ProbeOutcome = Literal["right", "stale", "wrong", "error"]


class _Fact(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class ExtensionUse(_Fact):
    """One request to `load_inline` or `load`, and what became of it."""

    name: str
    status: BuildStatus
    loaded: bool
    """The shared object was imported into the candidate's process."""
    phase: Phase | None = None
    """When it was asked for."""
    message: str = ""
    """First lines of the diagnostics when it was not built."""
    kernels: list[str] | None = None
    """Kernels it defines, from its launch table; None when the route has no table."""
    calls_init: int | None = None
    """Calls into its Python-visible functions during import and `__init__`."""
    calls_forward: int | None = None
    """The same during one forward."""


class OpUse(_Fact):
    """One ATen operator during one forward."""

    count: int
    elements: int
    """Elements of all tensor arguments and results together, summed over the calls."""
    bias: int = 0
    """Elements of the results of those calls that also added a bias (`addmm`, `convolution` with one)."""


class Change(_Fact):
    """Something of the process that the candidate changed."""

    kind: ChangeKind
    name: str
    """Dotted name: `torch.cuda.Event.elapsed_time`, `torch.backends.cuda.matmul.allow_tf32`, `sys.modules[torch]`."""
    phase: Phase
    before: str
    after: str


class Access(_Fact):
    """A sensitive act by the candidate's own code, from the interpreter's audit events (`audit.AuditTrail`)."""

    event: str
    """Audit event: `subprocess.Popen`, `socket.connect`, `ctypes.dlopen`, `sys._getframe`, `open:w`, ..."""
    detail: str
    """Its arguments, trimmed to 200 characters."""
    phase: Phase
    line: int
    """Line of the candidate that did it; 0 when unknown."""
    count: int = 1


class OutputFacts(_Fact):
    """What kind of object `forward` returned; worst case over all outputs of all untimed calls."""

    foreign_types: list[str] = []
    """Qualified names of tensor types that are not exactly torch.Tensor or torch.nn.Parameter."""
    instance_attributes: list[str] = []
    """Attributes found in a returned tensor's own `__dict__`."""
    wrong_device: str | None = None
    """Device of an output that is not where the inputs are."""
    aliases_input: list[int] = []
    """Indices of inputs whose storage an output shares."""
    aliases_parameter: bool = False
    """An output shares storage with a parameter or buffer of the module."""
    same_storage_as_previous_call: bool = False
    """An output of this call lives in the same storage as one of the previous call, which is still held."""


class ProbeResult(_Fact):
    """One experiment by the grader.

    same_pointer_new_content: after many calls, the inputs get new values in the same memory.
    same_content_again: those values once more; `stale` when a kernel that ran for them then no longer runs.
    unsampled_elements: a few elements in the interior change, the first, last and evenly strided ones do not.
    fresh_weights: a second `ModelNew` in the same process, built with another seed.
    repeat_same_input: the same call again, on memory poisoned afresh (on the CPU back end shared memory too); `wrong` when
        the two differ beyond tolerance.
    without_launches: the launch stubs of the extensions do nothing; `right` when the output is still right.
    handed_over: what the extensions were given then; `right` when the answer is among it.
    """

    name: ProbeName
    outcome: ProbeOutcome
    """right: agrees with the reference for the new state. stale: equals the output for the *old* state although the
    reference differs. wrong: neither. error: the call failed."""
    detail: str = ""


class Clocks(_Fact):
    """One series of timed calls by several clocks, milliseconds. Only the trusted side's clock is beyond reach."""

    event_ms: float
    """Mean per call by CUDA events on the current stream."""
    synced_ms: float
    """Mean per call by the grader's own host clock over the whole series, device idle before and after."""
    launch_overhead_ms: float
    """Share of one call in the cost of an empty order: subtracted before the two are compared."""
    drain_ms: float | None = None
    """Mean time from the end event on the current stream to an idle device."""
    in_process_ms: float | None = None
    """Mean by `time.perf_counter` inside the candidate's process."""
    per_call_ms: list[float] = []
    """In-process clock for each timed call, in order."""
    floor_ms: float | None = None
    """Time to write the outputs beyond the L2 cache at the memory's peak rate: no kernel can be faster."""


class RunEvidence(_Fact):
    """All that was seen of one candidate's run."""

    backend: Literal["cuda", "cpu"]
    reached: Phase
    """The last phase that was entered."""

    extensions: list[ExtensionUse] = []
    """In the order of the requests. Empty: the candidate never asked for one."""
    launches: dict[str, int] | None = None
    """Custom kernels launched during one forward (`kernel -> count`); None when any loaded extension cannot count."""
    launches_init: dict[str, int] | None = None
    """The same during import and `__init__`."""
    failed_launches: dict[str, int] = {}
    """Launches that the CUDA runtime refused, counted by our stubs."""
    gpu_kernels: dict[str, int] | None = None
    """All GPU kernels of one forward by the profiler, demangled or not; CUDA back end only."""
    other_streams: dict[str, int] | None = None
    """Of those, the ones that ran on a stream other than the caller's current one."""

    candidate_ops: dict[str, OpUse] | None = None
    """ATen operators of one candidate forward, by `probes.OpRecorder`."""
    reference_ops: dict[str, OpUse] | None = None
    """ATen operators of one reference forward, recorded alike in the grader."""

    changes: list[Change] = []
    accesses: list[Access] = []
    hidden_exceptions: list[str] = []
    """`Type: message (line N)` raised inside the candidate's own frames during forward, and swallowed there."""

    threads_before: int | None = None
    """OS threads of the candidate's process after warm-up of torch, before its code was imported."""
    threads_after: int | None = None
    """OS threads right after a forward returned and the device was idle."""
    python_threads: list[str] = []
    """Names of Python threads other than the main one, alive after a forward."""
    child_processes: list[str] = []
    """Command names of processes that the candidate started (builder not counted)."""

    outputs: OutputFacts | None = None
    poison_left: int | None = None
    """Elements of the outputs that still held the poison pattern, or NaN where the reference has none."""
    mutated_inputs: list[int] = []
    """Indices of tensor inputs whose content changed during forward and that the reference leaves alone."""
    probes: list[ProbeResult] = []

    clocks: Clocks | None = None
    timed_outputs_checked: int = 0
    timed_outputs_wrong: int = 0
    """Outputs of timed calls that the grader re-checked, and how many were wrong though the untimed ones were right."""
    late_writes: bool | None = None
    """An output still changed after forward had returned and the device was idle."""
    cuda_error: str | None = None
    """Error state of the runtime found after a call although the candidate reported success."""
