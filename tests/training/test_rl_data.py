"""How hard the problems of a phase are, by either scale."""

from __future__ import annotations

from pathlib import Path

import pytest
from rl_start import PYTORCH, pair

from dice.data.difficulty import DifficultyScale
from dice.data.schedule import Order
from dice.data.tokenizer import train_tokenizer
from dice.evaluation.prompts import PromptConfig
from dice.jsonl import write_jsonl
from dice.training.rl_config import Phase
from dice.training.rl_data import load_phase

ONE = "torch.relu(x)"
THREE = "torch.softmax(torch.exp(torch.relu(x)), 0)"
TWELVE = "torch.relu(" * 12 + "x" + ")" * 12
"""An architecture by the number of its operators."""


@pytest.mark.parametrize("order", ["uniform", "paper"])
@pytest.mark.parametrize(
    ("difficulty", "labels", "expected"),
    [
        ("level", (2, 1, 1), [2, 1, 1]),  # labels come first
        ("level", (None, 1, None), {"paper": [1, 1, 3], "uniform": [0, 1, 0]}),
        ("operators", (2, 1, 1), [1, 3, 12]),
        ("operators", (None, None, None), [1, 3, 12]),
    ],
)
def test_a_problem_is_as_hard_as_its_level_or_as_its_operators_are_many(
    tmp_path: Path,
    order: Order,
    difficulty: DifficultyScale,
    labels: tuple[int | None, ...],
    expected: list[int] | dict[str, list[int]],
) -> None:
    written = [
        pair("double", suffix=str(number)).model_copy(
            update={"pytorch_code": PYTORCH.format(expression=expression), "level": level}
        )
        for number, (expression, level) in enumerate(zip((ONE, THREE, TWELVE), labels, strict=True))
    ]
    write_jsonl(tmp_path / "pairs.jsonl", written)
    found = load_phase(
        Phase(problems=(str(tmp_path / "pairs.jsonl"),), order=order),
        train_tokenizer([PYTORCH], 300),
        PromptConfig(),
        max_prompt_tokens=None,
        room=4096,
        difficulty=difficulty,
    )
    assert [problem.difficulty for problem in found.problems] == (
        expected[order] if isinstance(expected, dict) else expected
    )
