"""The published schemas are the code's, and they do refuse bad rows."""

import json
from pathlib import Path

import jsonschema
import pytest
from verdicts import verdict

from dice.cli import main
from dice.schema import schemas

PUBLISHED = Path(__file__).parent.parent / "docs" / "schema"


def test_published_schemas_are_current(tmp_path, capsys):
    assert main(["schema", "--check", "--out", str(PUBLISHED)]) == 0
    assert main(["schema", "--check", "--out", str(tmp_path)]) == 2
    assert "differs from the code" in capsys.readouterr().err


def test_verdict_schema_accepts_a_verdict_and_refuses_others():
    schema = json.loads((PUBLISHED / "verdict.schema.json").read_text())
    assert schema == schemas()["verdict"]
    row = verdict().model_dump(mode="json")
    jsonschema.validate(row, schema)
    for change in ({"status": "fine"}, {"trials": "five"}, {"surprise": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(row | change, schema)
