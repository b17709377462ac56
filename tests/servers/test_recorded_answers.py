"""`dice ask` without a server: recorded answers as a row, or refused with the reason."""

from __future__ import annotations

import json

import pytest
from asking import FENCE, asked, prompts

from dice.errors import DiceError
from dice.jsonl import write_jsonl


def record(number: int, **changes) -> dict:
    return {"problem_id": f"level1/{number}_p", "model": "old-1", "date": "2026-01-05", "text": FENCE} | changes


def test_recorded_answers_are_a_row_without_a_server(tmp_path):
    rows = prompts(tmp_path, 2)
    known = {"prompt_sha256": rows[1].prompt_sha256, "thought": "so", "date": "2026-01-06T10:00:00Z"}
    write_jsonl(tmp_path / "answers.jsonl", [record(1, **known), record(0, completion_tokens=9), record(77)])
    before = (tmp_path / "answers.jsonl").read_bytes()
    first, second = asked(tmp_path, None, {"models": ["old-1"]})
    assert (first.problem_id, first.code, first.n_tokens) == ("level1/0_p", "class ModelNew: ...\n", 9)
    assert (second.thought, second.text) == ("so", FENCE)
    assert (tmp_path / "answers.jsonl").read_bytes() == before
    manifest = json.loads((tmp_path / "generations.jsonl.manifest.json").read_text())
    assert manifest["extra"]["models"] == ["old-1"]
    assert manifest["extra"]["first"].startswith("2026-01-05")
    assert manifest["extra"]["last"].startswith("2026-01-06")
    assert manifest["extra"]["prompts_unknown"] == 1
    assert str(tmp_path / "answers.jsonl") in manifest["inputs"]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([record(0)], "1 of 2 answers are missing, the first is sample 0 of level1/1_p"),
        ([record(0), record(1, model="new-2")], "is of 'new-2', and this row is of old-1"),
        ([record(0), record(1), record(1)], "is there twice"),
        ([record(0), record(1, prompt_sha256="0" * 64)], "answers another prompt"),
        ([record(0), record(1, date="last week")], "field 'date'"),
        ([{key: value for key, value in record(0).items() if key != "model"}], "field 'model'"),
        (None, "no such file; give the recorded answers"),
    ],
)
def test_records_that_are_refused(tmp_path, rows, sentence):
    prompts(tmp_path, 2)
    if rows is not None:
        write_jsonl(tmp_path / "answers.jsonl", rows)
    with pytest.raises(DiceError, match=sentence):
        asked(tmp_path, None, {"models": ["old-1"]})
    assert not (tmp_path / "generations.jsonl").exists()
