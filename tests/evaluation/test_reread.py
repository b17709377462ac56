"""`dice reread`: the candidate that the authors' script takes, beside ours."""

from __future__ import annotations

import pytest

from dice.config import parse_config
from dice.errors import DiceError
from dice.evaluation.generation import Generation
from dice.evaluation.prompts import prompt_sha256
from dice.evaluation.prompts.stage import PromptRow
from dice.evaluation.reread import RereadConfig, first_block, reread
from dice.jsonl import read_jsonl, write_jsonl
from dice.kernels.api import extract_code

DRAFT = "```python\nx = 1\n```"
ANSWER = "Here:\n```python\nclass ModelNew:\n    pass\n```\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (ANSWER, "class ModelNew:\n    pass"),
        (f"{DRAFT}\n{ANSWER}", "x = 1"),  # the first, whatever it holds
        ("``` python\nx = 1 ```", "x = 1"),
        ("```cpp\nint x;\n```", "int x;"),
        ("```\n  x = 1\n```", "x = 1"),
        ("```json\n{}\n```", "json\n{}"),  # only two languages are known
        ("```python\nx = 1", None),  # never closed
        ("x = 1", None),
        ("", None),
    ],
)
def test_the_first_block(text, code):
    assert first_block(text) == code


def generation(**changes) -> Generation:
    values = {
        "problem_id": "level1/1_A",
        "sample": 0,
        "seed": 1,
        "prompt_sha256": "0" * 64,
        "code": None,
        "n_tokens": 1,
    }
    values |= {"n_forwards": 1, "seconds": 0.1, "finish_reason": "stop", "order": [1]}
    return Generation(**(values | changes))


def write(folder, rows) -> dict[str, str]:
    write_jsonl(folder / "g.jsonl", rows)
    return {"generations": str(folder / "g.jsonl"), "out": str(folder / "r.jsonl")}


@pytest.mark.parametrize("apart", [True, False])
def test_a_draft_in_the_reasoning_counts_unless_it_is_removed(tmp_path, apart):
    row = generation(text=ANSWER, thought=DRAFT) if apart else generation(text=f"<think>{DRAFT}</think>\n{ANSWER}")
    given = write(tmp_path, [row])
    (kept,) = reread(parse_config(RereadConfig, given, "test"))
    (removed,) = reread(parse_config(RereadConfig, given | {"thoughts": "removed"}, "test"))
    ours = extract_code(row.text).code
    assert ours is not None
    assert (kept.code, removed.code) == ("x = 1", ours.strip())
    assert list(read_jsonl(given["out"], Generation)) == [removed]
    assert removed.model_dump(exclude={"code"}) == row.model_dump(exclude={"code"})


def test_gemma_is_judged_by_its_own_prompt(tmp_path):
    prompt = f"An example:\n{DRAFT}\nNow yours."
    rows = [PromptRow(id="level1/1_A", task="end_to_end", prompt_sha256=prompt_sha256(prompt), prompt=prompt)]
    write_jsonl(tmp_path / "p.jsonl", rows)
    given = write(tmp_path, [generation(text=ANSWER)]) | {"prompts": str(tmp_path / "p.jsonl")}
    assert [row.code for row in reread(parse_config(RereadConfig, given, "test"))] == ["x = 1"]
    given = write(tmp_path, [generation(text=ANSWER, problem_id="level1/2_B")]) | {"prompts": str(tmp_path / "p.jsonl")}
    with pytest.raises(DiceError, match=r"no prompt of level1/2_B"):
        reread(parse_config(RereadConfig, given, "test"))
