"""Rows of pairs: what is read, what is bad, and that nothing is half-read."""

import json

import pytest

from dice.data.pair import Measured, Pair, from_published, parse_pair, read_pairs, rows_with_lines
from dice.errors import DiceError
from dice.jsonl import RowError, write_jsonl

GOOD = {
    "id": "a",
    "pytorch_code": "class Model: pass\n",
    "cuda_code": "source = 'x'\nclass ModelNew: pass\n",
    "source": "test",
    "level": 2,
    "measured": {"speedup": 1.5, "gpu": "any"},
}


def write_lines(path, *rows):
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_a_written_pair_reads_back_equal(tmp_path):
    pair = parse_pair(GOOD)
    write_jsonl(tmp_path / "pairs.jsonl", [pair])
    assert read_pairs(tmp_path / "pairs.jsonl") == ([pair], [])
    assert pair.measured == Measured.model_validate({"speedup": 1.5, "gpu": "any"})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cuda_code": ...}, "missing field 'cuda_code'"),
        ({"pytorch_code": "class Model(:\n"}, "'pytorch_code' does not parse as Python at its line 1"),
        ({"cuda_code": "x = (\n"}, "'cuda_code' does not parse"),
        ({"cuda_code": "x\0"}, "'cuda_code' does not parse"),
        ({"cuda_code": "  \n"}, "'cuda_code' is empty"),
        ({"level": 7}, "unknown level 7"),
        ({"level": 0}, "unknown level 0"),
        ({"level": "easy"}, "field 'level'"),
        ({"cuda_kode": "x"}, "unknown field 'cuda_kode'"),
        ({"id": ""}, "'id' is empty"),
        ({"id": None}, "field 'id'"),
        ({"prefix": ""}, "some are present and some are not"),
        ({"prefix": "", "middle": "y", "suffix": ""}, "prefix + middle + suffix is not cuda_code"),
        ({"measured": {"speedup": "fast"}}, "measured.speedup"),
    ],
)
def test_bad_rows_have_a_reason(change, reason):
    row = {key: value for key, value in {**GOOD, **change}.items() if value is not ...}
    with pytest.raises(RowError) as caught:
        parse_pair(row)
    assert reason in str(caught.value)


def test_split_parts_that_join_to_the_code_are_accepted():
    code = GOOD["cuda_code"]
    pair = parse_pair({**GOOD, "prefix": "", "middle": code[:12], "suffix": code[12:]})
    assert pair.middle == "source = 'x'"


def test_refuse_names_file_line_and_number_of_bad_rows(tmp_path):
    path = write_lines(tmp_path / "p.jsonl", GOOD, "", {**GOOD, "id": "b", "level": 9}, {**GOOD, "id": "c", "level": 9})
    with pytest.raises(DiceError, match=r"p\.jsonl:3: row 'b': unknown level 9.*1 more bad row"):
        read_pairs(path)


def test_skip_reports_every_bad_row_and_keeps_the_rest(tmp_path):
    path = write_lines(
        tmp_path / "p.jsonl",
        GOOD,
        "{not json",
        [1, 2],
        {**GOOD, "pytorch_code": "1 +"},
        GOOD,
        {**GOOD, "id": "z", "measured": None},
        '{"id": NaN}',
        '{"id": "half", "pytorch_code": "pass"',
    )
    pairs, bad = read_pairs(path, on_bad="skip")
    assert [pair.id for pair in pairs] == ["a", "z"]
    assert [row.line for row in bad] == [2, 3, 4, 5, 7, 8]
    assert "not valid JSON" in bad[0].reason
    assert "found list" in bad[1].reason
    assert "does not parse" in bad[2].reason
    assert bad[3].reason == "duplicate id (first used at line 1)"
    assert str(bad[3]) == f"{path}:5: row 'a': duplicate id (first used at line 1)"


def test_bytes_that_are_no_text_are_one_bad_row(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b'\n{"id": "\xff"}\n')
    pairs, bad = read_pairs(path, on_bad="skip")
    assert (len(pairs), [row.line for row in bad]) == (1, [2])


def test_json_arrays_are_read_with_the_line_of_each_row(tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps([GOOD, {**GOOD, "id": "b", "level": 8}, 5, {**GOOD, "id": "c"}], indent=1))
    lines = [number for number, _ in rows_with_lines(path)]
    text = path.read_text().splitlines()
    assert [text[number - 1].strip() for number in lines] == ["{", "{", "5,", "{"]
    pairs, bad = read_pairs(path, on_bad="skip")
    assert [pair.id for pair in pairs] == ["a", "c"]
    assert [row.line for row in bad] == lines[1:3]


@pytest.mark.parametrize(
    "text",
    [
        '[{"id": "a"}',
        "[",
        '[{"id": "a"}, {"id"]',
        '[{"id": "a"}] rest',
        '[{"id": "a"}][{}]',
        '[{"id": "a"} {"id": "b"}]',
        '[{"id": "a"},]',
        '[{"id": "a"},,{}]',
    ],
)
def test_a_broken_array_is_refused_whole(tmp_path, text):
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(DiceError, match=r"p\.json:1"):
        list(rows_with_lines(tmp_path / "p.json"))


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(DiceError, match="no such file"):
        read_pairs(tmp_path / "none.jsonl")


def test_the_authors_rows_are_converted(tmp_path):
    program = {"idx": 3, "level": "2", "pytorch_code": "class Model: pass", "cuda_code": "", "raw_answer": "boxed 2"}
    broken = {**program, "idx": 4, "level": "7"}
    unlabelled = {**program, "idx": 5, "level": "0"}
    path = tmp_path / "programs.json"
    path.write_text(json.dumps([program, broken, unlabelled]))
    pairs, bad = read_pairs(path, on_bad="skip", require_cuda=False, convert=from_published("cudallm"))
    assert pairs[:1] == [
        Pair(
            id="3",
            pytorch_code="class Model: pass",
            cuda_code="",
            source="cudallm",
            level=2,
            origin={"raw_answer": "boxed 2"},
        )
    ]
    assert [row.reason for row in bad] == ["unknown level 7 (known: 1, 2, 3, 4, or null)"]
    assert [(pair.id, pair.level) for pair in pairs[1:]] == [("5", None)]


@pytest.mark.parametrize("origin", [None, [1], "x"])
def test_an_origin_that_is_no_object_is_a_bad_row(tmp_path, origin):
    path = write_lines(tmp_path / "p.jsonl", {**GOOD, "origin": origin, "raw_answer": "boxed 2"})
    _, bad = read_pairs(path, on_bad="skip", convert=from_published("x"))
    assert "field 'origin'" in bad[0].reason


def test_a_field_that_a_converter_needs_is_reported_as_missing(tmp_path):
    path = write_lines(tmp_path / "p.jsonl", {"id": "a"})
    _, bad = read_pairs(path, on_bad="skip", convert=lambda row: {"id": row["id"], "pytorch_code": row["torch"]})
    assert bad[0].reason == "missing field 'torch'"
