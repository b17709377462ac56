"""The problems of an RL phase with their prompts, and the rule that takes a candidate from an answer."""

from __future__ import annotations

from dataclasses import dataclass

from dice.data.difficulty import DifficultyScale, difficulties
from dice.data.infilling import split_candidate
from dice.data.middle import extract_middle
from dice.data.pair import Pair, from_published, read_pairs
from dice.data.schedule import Order
from dice.data.source_string import InfillingRefused
from dice.data.tokenizer import CodeTokenizer
from dice.errors import DiceError
from dice.evaluation.prompts import PromptConfig, Task, make_prompts
from dice.kernels.api import extract_code
from dice.training.rl_config import Phase


@dataclass(frozen=True)
class Candidate:
    """The program that an answer holds."""

    code: str | None
    """None: there is nothing to verify, and the answer earns 0."""
    reason: str = ""
    """Why there is no code."""
    left_middle: bool = False
    """Infilling: the answer holds more than the middle; the rest has been cut off."""


@dataclass(frozen=True)
class RlProblem:
    """One problem with its prompt."""

    id: str
    pytorch_code: str
    prompt: tuple[int, ...]
    difficulty: int
    """Its level or the number of its operators; 0 where the order needs none and none is given."""
    prefix: str | None = None
    """Infilling: the text before and behind the middle. None: the answer is the whole file."""
    suffix: str | None = None

    def candidate(self, text: str) -> Candidate:
        """The candidate in the answer `text`.

        Infilling: the answer's middle, cut by the rule of `dice.data.middle.extract_middle`, between the given prefix
        and suffix. The rest of the answer is cut off; an answer without a middle is refused.
        """
        if self.prefix is None or self.suffix is None:
            found = extract_code(text)
            return Candidate(found.code, found.reason)
        try:
            middle = extract_middle(self.prefix, self.suffix, text)
        except InfillingRefused as refusal:
            return Candidate(None, str(refusal))
        outside = middle.before.strip() + middle.after.strip()
        code = self.prefix + middle.middle + self.suffix
        return Candidate(code, left_middle=bool(outside.replace("```python", "").strip("`\n ")))


@dataclass(frozen=True)
class PhaseData:
    """The problems of a phase, in the files' order."""

    problems: list[RlProblem]
    too_long: list[str]
    """Problems that were left out because their prompt is too long."""
    not_split: list[str]
    """Infilling: programs that cannot be split."""


def load_phase(
    phase: Phase,
    tokenizer: CodeTokenizer,
    prompt: PromptConfig,
    *,
    max_prompt_tokens: int | None,
    room: int,
    difficulty: DifficultyScale = "level",
    whole_file: bool = False,
) -> PhaseData:
    """Read, split, label and tokenize. `room`: tokens of the longest prompt that the model's positions allow.

    `whole_file`: infilling prompts ask for the whole file, and the answer is taken as it is (released behaviour).
    Raises DiceError when no problem is left, or when a prompt is longer than `room` and not left out.
    """
    infilling = phase.task == "infilling"
    pairs: list[Pair] = []
    for path in phase.problems:
        pairs += read_pairs(path, on_bad=phase.on_bad, require_cuda=infilling, convert=from_published("unknown"))[0]
    not_split: list[str] = []
    if infilling:
        pairs, not_split = _split(pairs)
    tasks = [Task(p.pytorch_code, p.prefix, p.suffix) if infilling else Task(p.pytorch_code) for p in pairs]
    asked = tokenizer.encode_batch(make_prompts(tasks, prompt)) if tasks else []
    problems: list[RlProblem] = []
    too_long: list[str] = []
    for pair, task, how_hard, ids in zip(pairs, tasks, _how_hard(pairs, phase.order, difficulty), asked, strict=True):
        if max_prompt_tokens is not None and len(ids) > max_prompt_tokens:
            too_long.append(pair.id)
            continue
        if len(ids) > room:
            raise DiceError(
                f"problem '{pair.id}': its prompt has {len(ids)} tokens and the model's positions leave {room} beside "
                "rollout.max_new_tokens; lower that, or set rollout.max_prompt_tokens to leave such problems out."
            )
        scaffold = (None, None) if whole_file else (task.prefix, task.suffix)
        problems.append(RlProblem(pair.id, pair.pytorch_code, tuple(ids), how_hard, *scaffold))
    if not problems:
        raise DiceError(
            f"phase {phase.name or phase.task}: no problem is left of {', '.join(phase.problems)} "
            f"({len(too_long)} too long, {len(not_split)} cannot be split)."
        )
    return PhaseData(problems, too_long, not_split)


def _how_hard(pairs: list[Pair], order: Order, difficulty: DifficultyScale) -> list[int]:
    """What the schedule sorts by, for each pair."""
    if difficulty == "operators":
        return [row.operators or 0 for row in difficulties(pairs, use_labels=False)]
    if order == "uniform":
        return [pair.level or 0 for pair in pairs]
    labelled = {row.id: row.level for row in difficulties([p for p in pairs if p.level is None])}
    return [pair.level if pair.level is not None else labelled[pair.id] or 0 for pair in pairs]


def _split(pairs: list[Pair]) -> tuple[list[Pair], list[str]]:
    done: list[Pair] = []
    refused: list[str] = []
    for pair in pairs:
        try:
            done.append(pair if pair.middle is not None else split_candidate(pair.cuda_code).into(pair))
        except InfillingRefused:
            refused.append(pair.id)
    return done, refused
