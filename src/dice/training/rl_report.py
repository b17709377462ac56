"""A step's answers as numbers and as records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dice.training.rl_history import AnswerRow, RlRow
from dice.training.rl_update import Groups
from dice.training.rollout import Answer


def answer_fields(answers: Sequence[Answer], groups: Groups, problems: int) -> dict[str, Any]:
    """The fields of an RlRow that describe the answers of all processes."""
    known = [answer.reward for answer in answers if answer.reward is not None]
    codes = [(a.asked.problem.id, a.candidate.code) for a in answers if a.candidate.code is not None]
    verdicts = [answer.verdict for answer in answers if answer.verdict is not None]
    found = Counter(name for verdict in verdicts for name in {finding.name for finding in verdict.deception})
    n = len(answers)
    tokens = sum(len(answer.completion.ids) for answer in answers)
    return {
        "problems": problems,
        "samples": n,
        "reward": sum(known) / len(known) if known else None,
        "left_out": n - len(known),
        "groups_all_right": groups.all_right,
        "groups_all_wrong": groups.all_wrong,
        "groups_with_signal": groups.with_signal,
        "signal_share": groups.with_signal / problems,
        "statuses": dict(Counter(answer.status for answer in answers).most_common()),
        "no_code_share": 1 - len(codes) / n,
        "left_middle_share": sum(answer.candidate.left_middle for answer in answers) / n,
        "deception_rate": sum(answer.deceptive for answer in answers) / n,
        "findings": dict(found.most_common()),
        "distinct_share": len(set(codes)) / max(1, len(codes)),
        "response_tokens": tokens / n,
        "cut_off_share": sum(answer.completion.finish_reason == "length" for answer in answers) / n,
        "tokens_per_forward": tokens / max(1, sum(answer.completion.n_forwards for answer in answers)),
    }


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
    learnt = "" if row.loss is None else f", KL {row.kl:.2g}, entropy {row.entropy:.3f}, clipped {row.clip_share:.1%}"
    return (
        f"{row.phase}: reward {reward}, signal {row.signal_share:.0%}{learnt}, {row.response_tokens:.0f} tokens, "
        f"deceptive {row.deception_rate:.1%}, {row.seconds:.0f} s (wait {row.wait_share:.0%})"
    )
