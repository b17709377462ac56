"""Configuration: typed, documented, and never silently wrong."""

import argparse
from typing import Literal

import pytest

from dice.config import add_options, config_from, load_config, schema_of, spec_hash, stage_config, to_spec
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


def test_a_required_field_that_nobody_gave_says_how_to_give_it(tmp_path):
    @stage_config
    class Needs:
        """Needs."""

        verdicts: str
        """Where they are."""

    with pytest.raises(DiceError, match=r"'verdicts': Field required\. Give its option.*--set verdicts=VALUE"):
        load_config(Needs, None)
    path = tmp_path / "c.yaml"
    path.write_text("{}")
    with pytest.raises(DiceError, match=r"c\.yaml: 'verdicts': Field required\.$"):  # a file's reader knows its key
        load_config(Needs, path)


def test_missing_file_and_bad_override(tmp_path):
    with pytest.raises(DiceError, match="no such file"):
        load_config(Outer, tmp_path / "none.yaml")
    with pytest.raises(DiceError, match="expected key=value"):
        load_config(Outer, None, ["steps"])
    with pytest.raises(DiceError, match="--set steps=\\[: not valid YAML"):
        load_config(Outer, None, ["steps=["])


def test_hash_is_of_content_not_order():
    assert spec_hash({"a": 1, "b": 2}) == spec_hash({"b": 2, "a": 1})
    assert spec_hash({"a": 1}) != spec_hash({"a": 2})
    assert to_spec(Outer()) == {"steps": 3, "inner": {"lr": 1e-5}}


def test_schema_carries_the_descriptions():
    schema = schema_of(Outer)
    assert schema["properties"]["steps"]["description"] == "Number of steps."
    assert schema["additionalProperties"] is False


@stage_config
class Stage:
    """A stage with one field of every kind that has an option."""

    out: str
    """File to write."""
    sizes: tuple[int, ...] = (1, 2)
    """Sizes to take,
    at least 5% of them."""
    order: Literal["up", "down"] | None = None
    """Which way."""
    seed: int | None = None
    """Seed; None: a secret one."""
    parts: tuple[str, ...] = ()
    """Parts; none: all."""
    timed: bool = True
    """Measure time."""
    heldout: bool = False
    """Take the rest."""
    outer: Outer = Outer()
    """A group of groups."""


def stage_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quiet", action="store_true")
    names = {"no_timing": "timed", "rate": "outer.inner.lr", "most_steps": "outer.steps"}
    add_options(parser, Stage, "out", "sizes", "order", "seed", "parts", "heldout", **names)
    return parser


def from_options(*words: str) -> Stage:
    return config_from(stage_parser().parse_args(words), Stage)


def test_an_option_sets_its_field_and_no_option_leaves_the_default():
    assert from_options("--out", "o") == Stage(out="o")
    words = "--out o --sizes 3 4 --order down --seed 7 --no-timing --heldout --rate 0.5 --most-steps 9 --quiet"
    assert from_options(*words.split()) == Stage(
        out="o",
        sizes=(3, 4),
        order="down",
        seed=7,
        timed=False,
        heldout=True,
        outer=Outer(steps=9, inner=Inner(lr=0.5)),
    )


def test_options_win_over_set_and_set_over_the_file(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("out: file\nseed: 1\nouter: {steps: 1, inner: {lr: 1.0}}\n")
    config = from_options("--config", str(path), "--set", "outer.steps=2", "--set", "seed=2", "--seed", "3")
    assert config == Stage(out="file", seed=3, outer=Outer(steps=2, inner=Inner(lr=1.0)))


def test_what_a_stage_makes_of_other_options_wins_unless_it_is_none():
    args = stage_parser().parse_args(["--out", "o", "--seed", "1"])
    assert config_from(args, Stage, {"seed": 2, "order": None}) == Stage(out="o", seed=2)


@pytest.mark.parametrize(
    ("words", "needle"),
    [
        ("--seed many --out o", "'seed': .*integer"),
        ("--sizes 1 x --out o", "'sizes.1': .*integer"),
        ("--seed 1", "'out': .*required"),
        ("--out o --config {", "--config: not a JSON object"),
    ],
)
def test_a_bad_option_is_one_sentence(words, needle):
    with pytest.raises(DiceError, match=needle) as refused:
        from_options(*words.split())
    assert "\n" not in str(refused.value)


def test_help_is_the_fields_own():
    text = " ".join(stage_parser().format_help().split())
    assert "--out OUT File to write. (required) --sizes" in text
    assert "Sizes to take, at least 5% of them. (default: 1 2)" in text
    assert "--order {up,down} Which way. --seed SEED Seed; without it: a secret one. --parts" in text
    assert "Parts; none: all. --heldout" in text
    assert "--no-timing Turns this off: Measure time." in text
    assert "--most-steps MOST_STEPS Number of steps. (default: 3)" in text
    assert "Stage" in text
    assert "--set KEY=VALUE set one field, `--set group.field=value`; can be given several times" in text


def test_an_option_of_no_field_is_refused_where_it_is_declared():
    for path in ("nothing", "outer.nothing", "out.nothing"):
        with pytest.raises(TypeError, match=f"Stage has no field '{path}'"):
            add_options(argparse.ArgumentParser(), Stage, name=path)
