"""The records of reinforcement learning: a row per step and a row per answer."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from dice.training.history import StepRow


class RlRow(StepRow):
    """One RL step: a row of history.jsonl."""

    phase: str
    task: str
    step_in_phase: int
    epoch: float
    """Passes over the phase's problems before this step."""
    level_mean: float
    """Mean difficulty of the step's problems: their level, or their number of operators (`difficulty`)."""
    problems: int
    """Groups drawn, those of `redrawn` included."""
    redrawn: int
    """Groups drawn in the place of one without a difference (dynamic sampling)."""
    pool: int | None
    """Problems of the phase's pool that are in use; None: all are, unmeasured."""
    samples: int
    """Answers drawn."""
    reward: float | None
    """Mean over the answers that earned 0 or 1; None where none did."""
    pass_at_8: float | None
    """Chance that one of eight answers to a problem is right, mean over groups of at least eight known rewards, without
    bias (dice.evaluation.pass_at_k); None where there is no such group."""
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
    entropy: float
    """Mean of -log p over the tokens of all answers, p by the policy that drew them: an estimate of its entropy per token
    (at temperature 1), and low where it has collapsed."""
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
    clip_share: float | None
    """Targets whose ratio was clipped."""
    mismatch: float | None
    """Mean |log ratio| in the first update. Trainer and sampler have the same weights there, so it is rounding only; with
    `draw_ahead` it is how far the last update has gone."""
    targets: int
    """Tokens that carried loss, over all updates."""
    seconds: float
    rollout_s: float
    """Decoding; verification runs at the same time. With `draw_ahead`, of the next step's answers."""
    verify_s: float
    """From the first candidate submitted to the last verdict."""
    wait_s: float
    """Waiting for verdicts, when nothing else is done."""
    pool_s: float
    """Measuring the pool, its decoding and verdicts included; in none of the others."""
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
    """Place of the problem in the step; those drawn anew come last."""
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
