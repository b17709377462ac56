"""JSON lines and the journal: complete or absent, never torn."""

import pytest
from pydantic import BaseModel

from dice.errors import DiceError
from dice.jsonl import Journal, read_jsonl, write_jsonl


class Point(BaseModel):
    x: int


def test_round_trip(tmp_path):
    path = tmp_path / "p.jsonl"
    assert write_jsonl(path, [Point(x=1), {"x": 2}]) == 2
    assert [row.x for row in read_jsonl(path, Point)] == [1, 2]


def test_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "p.jsonl"
    write_jsonl(path, [Point(x=1)])

    def rows():
        yield Point(x=2)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_jsonl(path, rows())
    assert [row.x for row in read_jsonl(path, Point)] == [1]
    assert [p.name for p in tmp_path.iterdir()] == ["p.jsonl"]


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ('{"x":1}\n{"x":"a"}\n', ":2: field 'x'"),
        ('{"x":1}\nnope\n', ":2: not valid JSON"),
        ("[1]\n", ":1: expected a JSON object"),
    ],
)
def test_bad_rows_name_their_line(tmp_path, text, needle):
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(DiceError, match=needle):
        list(read_jsonl(path, Point))


@pytest.mark.parametrize("torn", ["", '{"x":', '{"x":3}', "\x00" * 70000])
def test_journal_cuts_a_torn_line(tmp_path, torn):
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.append(Point(x=1))
        journal.append(Point(x=2))
    with path.open("a") as stream:
        stream.write(torn)
    with Journal(path) as journal:
        journal.append(Point(x=9))
    assert [row.x for row in read_jsonl(path, Point)] == [1, 2, 9]
