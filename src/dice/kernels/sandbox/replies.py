"""What a candidate's process may answer to each request: the schema of every reply.

A reply that fits becomes one of these classes, and the grader handles only those. One that does not is the candidate's
failure (`ChannelGarbage`), whatever is odd about it. What fits may still be a lie: see `dice.kernels.records.evidence`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from dice.kernels.records.evidence import Access, Change, Count, Form, OpUse, OutputFacts, Text, Words
from dice.kernels.sandbox import values
from dice.kernels.sandbox.channel import ChannelGarbage

MOST_FACTS = 10_000
"""Of one kind; what a candidate does more often than that is known well enough."""
Most = AfterValidator(lambda items: items[:MOST_FACTS])
Hash = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
Milliseconds = Annotated[float, Field(ge=0, le=1e9), AfterValidator(lambda ms: ms if ms >= 1e-6 else 0.0)]
"""No clock shows less than a nanosecond, and a ratio to less may be infinite."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class ExtensionReport(_Said):
    """What became of a built extension in the candidate's process."""

    loaded: bool
    calls_forward: Count | None = None


class Facts(_Said):
    """What the candidate's process saw; each reply brings some of it. Fields are as in `RunEvidence`."""

    outputs: OutputFacts | None = None
    operators: Annotated[dict[Words, OpUse], Field(max_length=MOST_FACTS)] = {}
    made: Annotated[dict[Words, OpUse], Field(max_length=MOST_FACTS)] = {}
    loaded: Annotated[dict[Words, OpUse], Field(max_length=MOST_FACTS)] = {}
    hidden_exceptions: Annotated[list[Words], Most] = []
    lines: Annotated[list[Count], Most] = []
    modules: Annotated[dict[Words, Text], Field(max_length=MOST_FACTS)] = {}
    changes: Annotated[list[Change], Most] = []
    accesses: Annotated[list[Access], Most] = []
    python_threads: Annotated[list[Words], Most] = []
    kernels: Annotated[dict[Hash, Words], Field(max_length=MOST_FACTS)] = {}
    """Readable names of its extensions' kernels, by the hash that marks their launches."""
    extensions: list[ExtensionReport] = []


class CandidateError(_Said):
    """An exception inside the candidate's process."""

    type: Words
    text: Words
    place: Words
    exit: bool
    out_of_memory: Words | None
    build_key: Words | None = None

    @property
    def sentence(self) -> str:
        """One line for the verdict."""
        text = " ".join(self.text.split())[:1500]
        return f"{self.type}: {text}" + (f" ({self.place})" if self.place else "")


class Failed(_Said):
    """Instead of a reply: the request raised."""

    error: CandidateError
    facts: Facts


class Done(_Said):
    """Nothing to say."""


class Imported(_Said):
    """The candidate's file was imported."""

    has_model: bool
    facts: Facts


class Made(_Said):
    """A model was made."""

    state: dict[Words, list[int]]
    """Shape of each tensor of its state."""
    moved: Count = 0
    """Elements that have the new value of a constant (`dice.kernels.candidate.moved_constants.Places`)."""
    others: Count = 0
    """Elements of tensors that are the same everywhere, of values that are no constants of the reference."""
    facts: Facts


class Offer(_Said):
    """A value that may be fetched."""

    header: dict[str, Any]
    bytes: Count
    _outline: values.Outline = PrivateAttr()

    def model_post_init(self, _: Any) -> None:
        """Check the header: a bad one raises ValueError."""
        self._outline = values.outline(self.header)
        if self._outline.n_bytes != self.bytes:
            raise values.BadHeader(f"{self.bytes} bytes for a header of {self._outline.n_bytes}")

    @property
    def outline(self) -> values.Outline:
        """What is offered, without its data."""
        return self._outline


class Forwarded(Offer):
    """Forward returned."""

    facts: Facts


class Traces(_Said):
    """How much of the answer stood in memory while no kernel ran, by form (`dice.kernels.likeness`)."""

    shares: dict[Form, Annotated[float, Field(ge=0, le=1.001)]]


class Mixed(_Said):
    """How the memory that kernels are led to follows two elements of an input (`dice.kernels.candidate.mixing`)."""

    pieces: Annotated[dict[Literal["apart", "mixed", "sided", "shared", "lost"], Count], Field(min_length=5)] | None
    """Without kernels; None where they are led to no memory."""
    staged: Count | None
    """With kernels: words that follow both elements before a launch, though no earlier launch left any; None where one may
    have left more than was looked at."""
    joined: bool
    """Whether an operator of PyTorch's may have joined parts that follow one of the elements each."""


class Crossed(_Said):
    """What the host has made between steps of a forward (`dice.kernels.candidate.crossing`)."""

    bytes: Count
    """That follow the inputs, or several places of them."""


class Overwritten(_Said):
    """What a candidate may have kept was overwritten."""

    numbers: Count
    kept: Count
    """Copies of it in memory that outlives a call, or pieces of that memory, overwritten or not."""


class Clocks(_Said):
    """The clocks were set ahead."""

    ways: Count
    """Words in memory by which the candidate's code comes to the new clocks."""


class Advancing(_Said):
    """What outlives a candidate's calls and is another one after each (`dice.kernels.candidate.advancing`)."""

    numbers: Count
    """Numbers that it counts up."""

    moves: bool
    """Anything at all, by whatever steps."""


class Times(_Said):
    """Times of one call (`dice.kernels.candidate.call_timer.CallTimes`)."""

    event_ms: Milliseconds
    in_process_ms: Milliseconds
    drain_ms: Milliseconds
    launch_ms: Milliseconds
    queued: bool


class TimedCall(_Said):
    """One timed call."""

    times: Times


class TimedSeries(_Said):
    """Timed calls, in order."""

    times: list[Times]


class Repeated(_Said):
    """How many bare calls there were."""

    calls: Count


class Steps(_Said):
    """Steps that the code of its extensions has taken so far, by where it lies: a count for each of the runtime's classes."""

    taken: Annotated[list[Count], Field(min_length=256, max_length=256)]


class Report(_Said):
    """All facts so far."""

    facts: Facts


class Noted(_Said):
    """Between other messages: something that the candidate did for the first time."""

    op: Literal["noted"]
    access: Access


Reply = TypeVar("Reply", bound=_Said)


def read_reply(message: dict[str, Any], kind: type[Reply]) -> Reply | Failed:
    """The reply in a message, or the failure that came in its place. Raises ChannelGarbage."""
    succeeded = message.pop("ok", None)
    if not isinstance(succeeded, bool):
        raise ChannelGarbage("a message that says neither that it is a result nor a failure")
    try:
        return (kind if succeeded else Failed).model_validate(message, strict=True)
    except ValidationError as error:
        raise _garbage(error) from error


def read_note(message: dict[str, Any]) -> Access:
    """The access that a message of `Noted` reports. Raises ChannelGarbage."""
    try:
        return Noted.model_validate(message, strict=True).access
    except ValidationError as error:
        raise _garbage(error) from error


def _garbage(error: ValidationError) -> ChannelGarbage:
    fault = error.errors()[0]
    place = ".".join(map(str, fault["loc"]))[:80]
    return ChannelGarbage(f"{error.error_count()} faults in a reply, first {place}: {fault['msg'][:200]}")
