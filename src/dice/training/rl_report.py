"""A step's answers as numbers and as records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dice.evaluation.pass_at_k import pass_at_k
from dice.training.rl_history import AnswerRow, RlRow
from dice.training.rl_update import Groups
from dice.training.rollout import Answer

PASS_K = 8
"""k of the pass@k that a step reports."""


def answer_fields(groups: Sequence[Sequence[Answer]], compared: Groups) -> dict[str, Any]:
    """The fields of an RlRow that describe the answers of all processes, by group."""
    answers = [answer for group in groups for answer in group]
    known = [answer.reward for answer in answers if answer.reward is not None]
    codes = [(a.asked.problem.id, a.candidate.code) for a in answers if a.candidate.code is not None]
    verdicts = [answer.verdict for answer in answers if answer.verdict is not None]
    found = Counter(name for verdict in verdicts for name in {finding.name for finding in verdict.deception})
    n = len(answers)
    tokens = sum(len(answer.completion.ids) for answer in answers)
    surprise = sum(-log_p for answer in answers for log_p in answer.completion.log_confidence)
    return {
        "problems": len(groups),
        "samples": n,
        "reward": sum(known) / len(known) if known else None,
        "pass_at_8": _pass_at_8(groups),
        "left_out": n - len(known),
        "groups_all_right": compared.all_right,
        "groups_all_wrong": compared.all_wrong,
        "groups_with_signal": compared.with_signal,
        "signal_share": compared.with_signal / len(groups),
        "statuses": dict(Counter(answer.status for answer in answers).most_common()),
        "no_code_share": 1 - len(codes) / n,
        "left_middle_share": sum(answer.candidate.left_middle for answer in answers) / n,
        "deception_rate": sum(answer.deceptive for answer in answers) / n,
        "findings": dict(found.most_common()),
        "distinct_share": len(set(codes)) / max(1, len(codes)),
        "entropy": surprise / max(1, tokens),
        "response_tokens": tokens / n,
        "cut_off_share": sum(answer.completion.finish_reason == "length" for answer in answers) / n,
        "tokens_per_forward": tokens / max(1, sum(answer.completion.n_forwards for answer in answers)),
    }


def _pass_at_8(groups: Sequence[Sequence[Answer]]) -> float | None:
    rewards = [[answer.reward for answer in group if answer.reward is not None] for group in groups]
    rates = [pass_at_k(len(each), int(sum(each)), PASS_K) for each in rewards if len(each) >= PASS_K]
    return sum(rates) / len(rates) if rates else None


def answer_row(step: int, answer: Answer) -> AnswerRow:
    """The record of one answer."""
    verdict = answer.verdict
    return AnswerRow(
        step=step,
        problem_id=answer.asked.problem.id,
        group=answer.asked.group,
        sample=answer.asked.sample,
        seed=answer.completion.request.seed,
        text=answer.text,
        code=answer.candidate.code,
        status=answer.status,
        message=verdict.message if verdict is not None else answer.candidate.reason,
        reward=answer.reward,
        findings=sorted({finding.name for finding in verdict.deception}) if verdict is not None else [],
        n_tokens=len(answer.completion.ids),
        n_forwards=answer.completion.n_forwards,
    )


def progress_line(row: RlRow) -> str:
    """One line about the step for people."""
    reward = "-" if row.reward is None else f"{row.reward:.3f}"
    best = "" if row.pass_at_8 is None else f", pass@8 {row.pass_at_8:.3f}"
    learnt = "" if row.loss is None else f", KL {row.kl:.2g}, clipped {row.clip_share:.1%}"
    return (
        f"{row.phase}: reward {reward}{best}, signal {row.signal_share:.0%}, entropy {row.entropy:.3f}{learnt}, "
        f"{row.response_tokens:.0f} tokens, "
        f"deceptive {row.deception_rate:.1%}, {row.seconds:.0f} s (wait {row.wait_share:.0%})"
    )
