"""What the Snakefile needs before there is a plan: the command line, the overrides, the images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dice.config import read_yaml
from dice.errors import DiceError

_PROFILE_FLAGS = ("--workflow-profile", "--profile")
_WITH_NUMBERS = ("suite", "exams", "servers", "own_engine", "verify", "rl_steps", "sizes")
"""Keys whose mappings hold numbers, booleans and nulls."""
_KNOWN = (
    "scale", "results", "seeds", "train_each_seed", "shards", "gpus", "processes", "backend", "device",
    "from_scratch", "start_from", "archive", "supplied", "hub_rows", "recorded", "local_rows", "vllm", "accept", "left_out",
    *_WITH_NUMBERS,
)  # fmt: skip
"""Keys that `--config` may override."""


def check_command_line(argv: Sequence[str], basedir: str | Path) -> None:
    """Refuse a profile that is not there: Snakemake ignores a misspelt workflow profile. Raises DiceError."""
    for place, word in enumerate(argv):
        flag, equals, value = word.partition("=")
        # argparse takes any beginning that is unambiguous
        if len(flag) < 5 or not any(known.startswith(flag) for known in _PROFILE_FLAGS):
            continue
        name = value if equals else (argv[place + 1] if place + 1 < len(argv) else "")
        if name == "none":
            continue
        folders = [Path(name), Path(basedir) / name, Path(basedir) / "profiles" / name]
        if not any((folder / file).is_file() for folder in folders for file in ("profile.yaml", "config.yaml")):
            known = sorted(path.parent.name for path in (Path(basedir) / "profiles").glob("*/profile.yaml"))
            raise DiceError(f"{flag} {name}: no such profile; profiles/ has {', '.join(known)}.")


def is_dry_run(argv: Sequence[str]) -> bool:
    """Whether Snakemake is asked for a plan only: `-n`, also among other letters (`-np`), or its long names."""
    return any(
        word in ("--dry-run", "--dryrun") or (word[:1] == "-" and word[1:].isalpha() and "n" in word[1:])
        for word in argv
    )


def overrides_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """What `--config key=value` overrides in the study. Raises DiceError for a key that the study does not have."""
    for key in config:
        if key not in _KNOWN:
            raise DiceError(f"--config {key}: not a setting of the study; it has {', '.join(_KNOWN)}.")
    typed = {key: _typed(config[key]) for key in _WITH_NUMBERS if key in config}
    return {key: value for key, value in config.items() if key != "scale"} | typed


def _typed(value: Any) -> Any:
    """Numbers, booleans and nulls from text: Snakemake reads every value inside a mapping as text."""
    if isinstance(value, Mapping):
        return {key: _typed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_typed(part) for part in value]
    return yaml.safe_load(value) if isinstance(value, str) else value


def images(path: str | Path) -> dict[str, str]:
    """Container image of every kind (`cpu`, `cuda`, `tex`) from containers/images.yaml; empty where there is no file."""
    if not Path(path).is_file():
        return {}
    values = read_yaml(path)
    found = values.get("images", values)
    return {
        name: image if isinstance(image, str) else str(image["uri"])
        for name, image in found.items()
        if isinstance(image, str) or (isinstance(image, Mapping) and image.get("uri"))
    }
