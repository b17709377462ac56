"""Pages say what is recorded: places are filled from CSV files, and a page that says something else is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_study import edited

from dice.cli import main
from dice.errors import DiceError
from dice.manifest import Stopwatch, write_manifest
from dice.report.embed import block, read_page
from dice.report.rows import Row, write_csv

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/measurements/small-models.md")
PLACE = "# Title\n\n<!-- recorded: table1.csv -->\nold text\n<!-- end of recorded -->\n\nEnd.\n"


def row(name: str, status: str, n: str, **cells: str) -> Row:
    metrics = [f"l{level}_{metric}" for level in (1, 2) for metric in ("exec", "fast1")]
    values = {f"{metric}{end}": "" for metric in metrics for end in ("", "_low", "_high", "_reported")}
    facts = {"measured_model": "m", "measured_params": "2.9M", "measured_on": "mini"} if status == "measured" else {}
    empty = {"row": name, "measured_model": "", "measured_params": "", "measured_on": ""}
    tail = {"status": status, "scale": "tiny", "n": n, "backend": "cpu", "protocol": "paper"}
    return empty | facts | values | cells | tail


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    exec_1 = {"l1_exec": "40.6", "l1_exec_low": "25.5", "l1_exec_high": "57.7", "l1_exec_reported": "47.0"}
    exec_2 = {"l2_exec": "0.0", "l2_exec_low": "0.0", "l2_exec_high": "12.9", "l2_fast1": "n/a", "l1_fast1": "n/a"}
    rows = [row("A", "reported", "", l1_exec_reported="99.0"), row("D|8B", "measured", "32/26", **exec_1, **exec_2)]
    write_csv(tmp_path / "table1.csv", rows)
    write_manifest("table1.csv", stage="table", spec={}, watch=Stopwatch())
    (tmp_path / "page.md").write_text(PLACE)
    return tmp_path


def test_a_place_gets_the_measured_rows_and_the_rest_of_the_page_stays(folder, capsys):
    assert main(["embed", "--check", "page.md"]) == 1
    assert "page.md: DIFFERS from what is recorded" in capsys.readouterr().out
    assert (folder / "page.md").read_text() == PLACE
    assert main(["embed", "page.md"]) == 0
    text = (folder / "page.md").read_text()
    assert text.startswith("# Title\n\n<!-- recorded: table1.csv -->\n")
    assert text.endswith("<!-- end of recorded -->\n\nEnd.\n")
    assert "old text" not in text
    assert [line for line in text.splitlines() if line.startswith("|")] == [
        "| row | level 1 (32): Exec | level 2 (26): Exec |",
        "| --- | --- | --- |",
        "| D\\|8B: m, 2.9M parameters, on mini | 40.6 % [25.5, 57.7] | 0.0 % [0.0, 12.9] |",
    ]
    assert "scale tiny, cpu back end, protocol paper" in text
    assert main(["embed", "--check", "page.md"]) == 0
    assert main(["embed", "page.md"]) == 0
    assert (folder / "page.md").read_text() == text


def test_rows_with_other_numbers_of_answers_say_theirs(folder):
    """A base is trained once, what follows it three times: a count in the header would be that of some rows."""
    exec_1 = {"l1_exec": "40.6", "l1_exec_low": "25.5", "l1_exec_high": "57.7"}
    write_csv(folder / "table1.csv", [row("A", "measured", "32", **exec_1), row("B", "measured", "96", **exec_1)])
    text = read_page(Path("page.md")).wanted
    assert "protocol paper.\n" in text
    assert "in brackets" not in text
    assert [line for line in text.splitlines() if line.startswith("|")] == [
        "| row | level 1: Exec | answers |",
        "| --- | --- | --- |",
        "| A: m, 2.9M parameters, on mini | 40.6 % [25.5, 57.7] | 32 |",
        "| B: m, 2.9M parameters, on mini | 40.6 % [25.5, 57.7] | 96 |",
    ]


def test_a_number_that_someone_typed_is_found(folder):
    main(["embed", "page.md"])
    edited(folder / "page.md", "40.6", "50.6")
    assert main(["embed", "--check", "page.md"]) == 1


def test_any_other_csv_is_shown_whole(folder):
    (folder / "claims.csv").write_text("claim,effect\nsft,1.5\n")
    write_manifest("claims.csv", stage="claims", spec={}, watch=Stopwatch())
    edited(folder / "page.md", "table1.csv", "claims.csv")
    assert "| claim | effect |\n| --- | --- |\n| sft | 1.5 |\n" in read_page(Path("page.md")).wanted


def test_what_is_not_recorded_keeps_its_text_and_is_said(folder, capsys):
    (folder / "table1.csv").unlink()
    assert main(["embed", "--check", "page.md"]) == 0
    assert capsys.readouterr().out == "page.md: table1.csv is not recorded yet; its place keeps its text.\n"


def test_exams_are_written_by_model_and_benchmark(folder):
    names = ("exec", "pass_at_1", "pass_at_8", "pass_at_64")
    empty = {f"{name}{end}": "" for name in names for end in ("", "_low", "_high")}
    facts = {"unit": "u", "measured_model": "stand-in u", "measured_params": "3M", "measured_on": "made", "level": "2"}
    found = {"exec": "50.0", "exec_low": "42.3", "exec_high": "57.7", "pass_at_1": "50.0", "pass_at_8": "70.0"}
    found |= {"pass_at_8_low": "60.0", "pass_at_8_high": "80.0"}
    tail = {
        "n": "1280",
        "problems": "160",
        "scale": "tiny",
        "backend": "cpu",
        "protocol": "paper",
        "manifest": "m.json",
    }
    write_csv(folder / "table1.csv", [facts | empty | found | tail])
    write_manifest("table1.csv", stage="exams", spec={}, watch=Stopwatch())
    main(["embed", "page.md"])
    assert [line for line in (folder / "page.md").read_text().splitlines() if line.startswith("|")] == [
        "| model | benchmark | level | problems | Exec | pass@8 |",
        "| --- | --- | --- | --- | --- | --- |",
        "| stand-in u, 3M parameters | made | 2 | 160 | 50.0 % [42.3, 57.7] | 70.0 % [60.0, 80.0] |",
    ]


@pytest.mark.parametrize(
    "text", ["no place", "<!-- recorded: a.csv -->\nnever ends", PLACE + "<!-- recorded: b.csv -->\n"]
)
def test_a_page_without_a_whole_place_is_refused(folder, text):
    (folder / "page.md").write_text(text)
    with pytest.raises(DiceError, match="expected `<!-- recorded: CSV -->`"):
        read_page(Path("page.md"))


def test_a_table_of_unknown_origin_is_refused(folder):
    (folder / "table1.csv.manifest.json").unlink()
    with pytest.raises(DiceError, match="has no manifest"):
        read_page(Path("page.md"))


def test_our_pages_say_what_is_recorded(monkeypatch):
    """Until a study is recorded this says nothing but that the places are there."""
    monkeypatch.chdir(ROOT)
    assert main(["embed", "--check", *PAGES]) == 0


def test_an_exam_with_a_back_end_of_its_own_is_named_with_it():
    text = block(Path(__file__).parents[2] / "results" / "recorded" / "nano" / "exams.csv")
    assert "scale nano, cuda back end for kernelbench-v0.1 and cpu back end for composites-9017, protocol paper" in text
