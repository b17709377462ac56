"""What the command line makes of bad input: a sentence and an exit code, never a traceback."""

from __future__ import annotations

import pytest

from dice.cli import STAGES, main


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"\xff\xfe{}\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "good.jsonl").write_text(
        '{"problem_id": "p", "problem_code": "x", "sample": 0, "code": null}\n', encoding="utf-8"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("mini --out file/x", "name a path that can be used"),
        ("shard --rows good.jsonl --index 0 --of 1 --out folder", "Is a directory"),
        ("shard --rows file --index 0 --of 1 --out out.jsonl", "file:1: not valid JSON"),
        ("score --config file", "file: not valid YAML"),
        ("table --show file", "file: not UTF-8 text"),
        ("lease --gpus 0 -- nosuchcommand", "nosuchcommand: no such command"),
        ("verify --candidates good.jsonl --out out.jsonl --trials 0", "correctness_trials"),
        ("verify --candidates good.jsonl --out out.jsonl --jobs -2", "machine.jobs"),
        ('score --config {"verdicts":[],"problems":"p","out":"o"}', "verdicts"),
    ],
)
def test_bad_input_is_one_sentence(place, capsys, command, sentence):
    assert main(command.split()) != 0
    told = capsys.readouterr().err
    assert sentence in told
    assert len(told.strip().splitlines()) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_explains_its_options(stage, capsys):
    with pytest.raises(SystemExit) as ended:
        main([stage, "--help"])
    assert ended.value.code == 0
    assert f"usage: dice {stage}" in capsys.readouterr().out


def test_an_interrupt_while_a_stage_is_imported_is_one_sentence(monkeypatch, capsys):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("dice.cli.importlib.import_module", interrupted)
    assert main(["mini"]) == 130
    assert "interrupted" in capsys.readouterr().err
