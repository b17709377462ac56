"""What was observed while one candidate ran: plain data, filled by the grader, weighed by `dice.kernels.checks`.

`candidate.probes` collects facts inside the candidate's process. The grader adds what the trusted side saw
(comparisons, clocks, processes). `checks` alone decides what the facts mean. Every field may be absent: None (or an empty
list) means "not observed" and is no finding by itself.

Native code in the candidate's process can forge the facts of that process. So these facts may lead to a finding, but they
do not clear a candidate: values, clocks, launches and process lists come from the trusted side. The exceptions are the
facts in `dice.kernels.checks.seen` that decide whether a name in the text means something.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from dice.kernels.records.extension import BuildStatus

Phase = Literal["import", "init", "forward", "timing"]
"""When it happened. `forward`: an untimed call. `timing`: a timed call."""

ChangeKind = Literal["function", "flag", "module", "environment", "hook"]
"""`function`: a guarded callable is no longer the same object (or its code object was swapped);
`flag`: a torch global switch; `module`: a name in `sys.modules` was replaced or removed;
`environment`: an environment variable was set or removed; `hook`: a trace, profile, excepthook or signal handler."""

ExperimentName = Literal[
    "same_pointer_new_content",
    "same_content_again",
    "unsampled_elements",
    "fresh_weights",
    "repeat_same_input",
    "without_launches",
    "answer_traces",
    "mixing",
    "mixing_between",
    "crossing",
    "later",
    "many_calls",
    "clock_ahead",
    "kept_answer",
    "kept_values",
    "left_answer",
    "same_steps",
    "other_guise",
    "other_fill",
    "other_fill_again",
    "constant_weights",
    "constant_inputs",
    "other_kinds",
    "unrelated_weights",
    "single_input",
    "fine_inputs",
    "fine_weights",
]
ExperimentOutcome = Literal["right", "idle", "stale", "wrong", "error"]
Form = Literal["equal", "scaled", "rearranged", "transformed", "combined"]
"""In which form an answer stands in memory (`dice.kernels.likeness`)."""


Words = Annotated[str, AfterValidator(lambda text: text[:4000])]
"""Text from the candidate's process, cut."""
Text = Annotated[str, AfterValidator(lambda text: text[:200_000])]
"""A program's text from the candidate's process, cut."""
Count = Annotated[int, Field(ge=0, lt=1 << 53)]


class _Fact(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class ExtensionUse(_Fact):
    """One request to `load_inline` or `load`, and its outcome."""

    name: str
    status: BuildStatus
    loaded: bool
    """The shared object was imported into the candidate's process."""
    phase: Phase | None = None
    """When the candidate requested it."""
    message: str = ""
    """First lines of the diagnostics when it was not built."""
    calls_forward: int | None = None
    """Calls of its Python-visible functions during one forward."""
    imports: list[str] | None = None
    """C functions of `checks.sensitive.C_FUNCTIONS` that its shared object imports, as the grader reads them in it; None
    without an object, or where it has no symbol table."""


class OpUse(_Fact):
    """One ATen operator during one forward."""

    count: Count
    elements: Count
    """Number of elements of all tensor arguments and results, summed over the calls."""
    least: Count = 0
    """Those of the call that had the fewest; 0: unknown."""
    bias: Count = 0
    """Number of result elements of calls that also added a bias (`addmm`, `convolution` with a bias); of norms, for each
    weight and bias that they were given."""
    products: Count = 0
    """Multiplications of real numbers in products, convolutions and attention; 0: none, or PyTorch knows no number."""
    largest: Count = 0
    """Elements of each call's largest tensor, those within an operator included (scores of attention, columns of a
    convolution), summed over the calls."""


class Change(_Fact):
    """A part of the process that the candidate changed."""

    kind: ChangeKind
    name: Words
    """Dotted name: `torch.cuda.Event.elapsed_time`, `torch.backends.cuda.matmul.allow_tf32`, `sys.modules[torch]`."""
    phase: Phase
    before: Words
    after: Words


class Access(_Fact):
    """A sensitive action of the candidate's own code, from Python's audit events (`candidate.audit_events.AuditTrail`)."""

    event: Words
    """Audit event: `subprocess.Popen`, `socket.connect`, `ctypes.dlopen`, `sys._getframe`, `open:w`, ..."""
    detail: Words
    """Its arguments, trimmed to 200 characters."""
    phase: Phase
    line: int
    """Line of the candidate that did it; 0 when unknown."""
    count: Count = 1


class OutputFacts(_Fact):
    """The kinds of objects that `forward` returned; the worst case over all outputs of all untimed calls."""

    foreign_types: list[Words] = []
    """Qualified names of tensor types that are not exactly torch.Tensor or torch.nn.Parameter."""
    instance_attributes: list[Words] = []
    """Attributes found in a returned tensor's own `__dict__`."""
    given_back: list[int] = []
    """Indices of the inputs in whose memory an output lies."""


class ExperimentResult(_Fact):
    """One experiment by the grader.

    same_pointer_new_content: after many calls, the inputs get new values in the same memory.
    same_content_again: those values once more; `stale` when a kernel that ran for them then no longer runs.
    unsampled_elements: a few elements in the interior change, the first, last and evenly strided ones do not.
    fresh_weights: a second `ModelNew` in the same process, built with another seed.
    repeat_same_input: the same call again, on newly poisoned memory (on the CPU back end shared memory too); `wrong` when
        the two outputs differ beyond tolerance.
    without_launches: the launch stubs of the extensions do nothing, on memory of NaN and of a plain number; `right` when one
        output is still right.
    constant_weights, constant_inputs: tensors that are the same everywhere get other values; `stale` when the output
        stays what it was although the reference's follows, also where it did so only for values that leave the first,
        the last and the sum or the largest what they were.
    other_kinds: an input that is the same everywhere, or counts up, gets each kind of values that it may stand for; `wrong`
        where the output is right for none of them.
    unrelated_weights: each weight that the constructor draws gets a factor and a sign of its own, then zeros among them get
        values; `stale` or `wrong` where the output is not the reference's, twice, whatever weights the model was made with.
    single_input: one input alone comes from another draw; `stale` where the output stays, twice, and the reference's follows.
    fine_inputs, fine_weights: values of eight significant bits get something in their fourteenth and fifteenth; `stale` where
        most of the output does not follow and the reference's does.
    answer_traces: memory that the kernels would have read or written in that call; `right` when the answer is in it.
    mixing: elements of an input change one by one while no kernel runs; `right` when some memory that the kernels are led to
        follows one of them alone, `wrong` when all of it follows several at once, `stale` when none follows any.
    mixing_between: the same while kernels run; `wrong` when they are led to numbers that follow both elements, and none that
        an earlier launch left does.
    crossing: many elements change at once while kernels run, and what launches and operators leave is put back but for its
        own places; `wrong` when a launch or an operator is led to something that follows two sets of elements.
    later: what the candidate counts up with each call is set ahead; what came of it.
    many_calls: where another experiment raised, or something moves from call to call that cannot be set ahead, new inputs
        after many calls in a new process, and in a second model there.
    clock_ahead: the clocks that the candidate's code asks are set ahead; what came of it.
    kept_answer: the last answer is overwritten wherever it may be kept, and the same inputs come again; `stale` when the
        output is wrong then.
    kept_values: a piece of memory that outlives a call and follows the inputs is overwritten, and the same inputs come
        again; `stale` when the output is wrong then.
    left_answer: new memory holds the last answer with a few wrong elements, and the same inputs come again; `stale` when the
        output is wrong then, or before on what other tensors have left there.
    same_steps: the same inputs come several times to extensions that count the steps of their code; `stale` when they take
        other steps for inputs that they have just seen, in each of three draws.
    other_guise: inputs that are views of larger memory, in PyTorch's inference mode; only where the output is right or stale.
    other_fill: new inputs on memory of finite numbers or zeros instead of NaN; only where the output is not right, or no
        kernel made it.
    other_fill_again: the same inputs on such memory; `stale` or `idle` when a kernel that ran on memory of NaN does not run.
    """

    name: ExperimentName
    outcome: ExperimentOutcome
    """right: agrees with the reference for the new state. idle: it does, and no kernel ran, unlike in the watched call.
    stale: equals the output for the *old* state although the reference differs. wrong: neither. error: the call failed."""
    detail: str = ""


class Clocks(_Fact):
    """One series of timed calls by several clocks, in milliseconds. Only the grader's is out of the candidate's reach."""

    event_ms: float
    """Mean per call by CUDA events on the current stream."""
    synced_ms: float
    """Mean per call by the grader's own host clock over the whole series, device idle before and after."""
    launch_overhead_ms: float
    """Cost of an empty request divided by the number of calls; subtracted before the two clocks are compared."""
    drain_ms: float | None = None
    """Mean time from the end event on the current stream to an idle device."""
    in_process_ms: float | None = None
    """Mean by `time.perf_counter` inside the candidate's process."""
    per_call_ms: list[float] = []
    """In-process clock for each timed call, in order."""
    floor_ms: float | None = None
    """Time to write the output bytes that exceed the L2 cache at peak memory rate. No kernel can be faster."""


class RunEvidence(_Fact):
    """All observations of one candidate's run."""

    backend: Literal["cuda", "cpu"]
    reached: Phase
    """The last phase that was entered."""

    extensions: list[ExtensionUse] = []
    """In the order of the requests. Empty: the candidate requested none."""
    launches: dict[str, int] | None = None
    """Launches by kernel during the watched forward, as the grader reads them in its ledger
    (`sandbox.launch_ledger`); None when a loaded extension may launch without being counted."""
    launches_init: dict[str, int] | None = None
    """The same during import and `__init__`."""
    unwatched_launches: list[int] = []
    """Launches of each forward before the watched one, in order. The last of them had the inputs of the watched one."""
    timed_launches: int | None = None
    """Launches of a whole series of timed calls, of the series with the fewest; None: none was timed."""
    forged: str = ""
    """How the ledger was written to by somebody else than a launch; empty where it was not."""
    failed_launches: dict[str, int] = {}
    """Launches that the CUDA runtime refused, from the ledger too."""

    candidate_ops: dict[str, OpUse] | None = None
    """ATen operators of one candidate forward, by `probes.OpRecorder`."""
    reference_ops: dict[str, OpUse] | None = None
    """ATen operators of one reference forward, recorded in the same way in the grader."""
    shared_ops: dict[str, OpUse] | None = None
    """Those of them that operators of PyTorch's did in the candidate's forward, as their values tell
    (`checks.shared_values`); None: not asked."""

    made_ops: dict[str, OpUse] | None = None
    """ATen operators while a model of the candidate's was made; of the model with the most work."""
    loaded_ops: dict[str, OpUse] | None = None
    """The same while it got its weights."""
    first_ops: dict[str, OpUse] | None = None
    """Those of the first forward of a model; None: not asked."""
    weights_ops: dict[str, OpUse] | None = None
    """Those of `reference_ops` that follow no input, but weights alone; None: not asked, or none of them mixes elements."""
    constructor_ops: dict[str, OpUse] | None = None
    """Those of the reference's constructor; None: not asked."""

    changes: list[Change] = []
    accesses: list[Access] = []
    hidden_exceptions: list[str] = []
    """`Type: message (line N)` raised in the candidate's own frames during forward, and caught there."""

    lines: list[int] = []
    """Lines of the candidate's file that ran in the watched forward."""
    modules: dict[str, str] = {}
    """Text of the modules that the candidate wrote and imported, by path, as Python compiled it."""
    python_threads: list[str] = []
    """Names of Python threads other than the main one, alive after a forward."""
    threads: list[int] = []
    """Threads of its processes after each untimed forward in order, native ones included, as the grader counts them."""
    child_processes: list[str] = []
    """Command names of processes that the candidate started."""

    outputs: OutputFacts | None = None
    poison_left: int | None = None
    """Elements of the outputs that still held the poison pattern where the reference has a number."""
    rounding: float | None = None
    """Error of the outputs against the reference in fp64, as a multiple of the fp32 reference's own; None: not measured."""
    mutated_inputs: list[int] = []
    """Indices of inputs that forward changed and that the reference leaves alone, or leaves with other values."""
    reference_gives_back: list[int] = []
    """Indices of the inputs in whose memory an output of the reference lies."""
    experiments: list[ExperimentResult] = []

    clocks: Clocks | None = None
    timed_outputs_checked: int = 0
    timed_outputs_wrong: int = 0
    """Number of outputs of timed calls that the grader checked, and number of wrong ones among them."""
    late_writes: bool | None = None
    """An output still changed after forward had returned and the device was idle."""
