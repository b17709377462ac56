"""Configuration: typed, documented, and never silently wrong."""

import pytest

from dice.config import load_config, schema_of, spec_hash, stage_config, to_spec
from dice.errors import DiceError


@stage_config
class Inner:
    """Inner."""

    lr: float = 1e-5
    """Learning rate."""


@stage_config
class Outer:
    """Outer."""

    steps: int = 3
    """Number of steps."""
    inner: Inner = Inner()
    """The inner group."""


def test_yaml_then_overrides(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("steps: 5\ninner: {lr: 1.0e-4}\n")
    config = load_config(Outer, path, ["inner.lr=0.5"])
    assert (config.steps, config.inner.lr) == (5, 0.5)


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("stepz: 5\n", "stepz.*Known keys: steps, inner"),
        ("steps: many\n", "'steps'"),
        ("- 1\n", "expected a mapping"),
        ("a: [\n", "not valid YAML"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, needle):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(DiceError, match=needle):
        load_config(Outer, path)


def test_missing_file_and_bad_override(tmp_path):
    with pytest.raises(DiceError, match="no such config file"):
        load_config(Outer, tmp_path / "none.yaml")
    with pytest.raises(DiceError, match="expected key=value"):
        load_config(Outer, None, ["steps"])


def test_hash_is_of_content_not_order():
    assert spec_hash({"a": 1, "b": 2}) == spec_hash({"b": 2, "a": 1})
    assert spec_hash({"a": 1}) != spec_hash({"a": 2})
    assert to_spec(Outer()) == {"steps": 3, "inner": {"lr": 1e-5}}


def test_schema_carries_the_descriptions():
    schema = schema_of(Outer)
    assert schema["properties"]["steps"]["description"] == "Number of steps."
    assert schema["additionalProperties"] is False
