"""The records of reinforcement learning: a row per step and a row per answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dice.jsonl import read_jsonl
from dice.training.history import StepRow


class RlRow(StepRow):
    """One RL step: a row of history.jsonl."""

    phase: str
    task: str
    step_in_phase: int
    epoch: float
    """Passes over the phase's problems before this step."""
    level_mean: float
    """Mean difficulty of the step's problems."""
    problems: int
    samples: int
    """Answers drawn."""
    reward: float | None
    """Mean over the answers that earned 0 or 1; None where none did."""
    left_out: int
    """Answers that earned neither (a host error after all retries, or no verdict)."""
    host_errors: int
    """Host errors among the verdicts, also where a retry succeeded."""
    groups_all_right: int
    groups_all_wrong: int
    groups_with_signal: int
    signal_share: float
    """Groups whose rewards differ, over all groups: the others are dropped."""
    statuses: dict[str, int]
    """Answers by status of their verdict."""
    no_code_share: float
    left_middle_share: float
    """Infilling: answers that held more than the middle and were cut."""
    deception_rate: float
    """Answers with a fatal finding of deception, over all answers."""
    findings: dict[str, int]
    """Name of a finding -> answers."""
    distinct_share: float
    """Distinct texts among the candidates, over all candidates; low where groups have collapsed."""
    response_tokens: float
    """Mean length of an answer."""
    cut_off_share: float
    """Answers without an end token."""
    tokens_per_forward: float
    updates: int
    """Optimizer updates; 0 when no group had a signal."""
    learning_rate: float
    loss: float | None
    """Mean of the objective over the step's updates."""
    grad_norm: float | None
    """Mean over updates, before clipping."""
    kl: float | None
    """Mean k3 from the reference, over targets."""
    entropy: float | None
    """Mean of -log p of the drawn tokens: an estimate of the policy's entropy per token."""
    clip_share: float | None
    """Targets whose ratio was clipped."""
    mismatch: float | None
    """Mean |log ratio| in the first update, where trainer and sampler have the same weights: rounding only."""
    targets: int
    """Tokens that carried loss, over all updates."""
    seconds: float
    rollout_s: float
    """Decoding; verification runs at the same time."""
    verify_s: float
    """From the first candidate submitted to the last verdict."""
    wait_s: float
    """From the last answer to the last verdict, when nothing else is done."""
    update_s: float
    wait_share: float
    """wait_s / seconds."""
    peak_memory_gib: float | None = None


class AnswerRow(BaseModel):
    """One answer: a row of rollouts/step-NNNNNN.RANK.jsonl."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    step: int
    problem_id: str
    group: int
    """Place of the problem in the step."""
    sample: int
    seed: int
    text: str
    code: str | None
    """The candidate."""
    status: str
    """Status of the verdict; `no_code`; `no_verdict` when none came."""
    message: str
    reward: float | None
    findings: list[str]
    n_tokens: int
    n_forwards: int


def read_rl_history(folder: str | Path) -> Iterator[RlRow]:
    """The rows of a run's folder."""
    yield from read_jsonl(Path(folder) / "history.jsonl", RlRow)
