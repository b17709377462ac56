"""Typed stage configuration: dataclasses in code, YAML for what a reader changes, overrides on the command line.

A stage declares a pydantic dataclass made by `@stage_config`; every field is followed by one line of meaning and
unit, which becomes its description in the generated JSON Schema (`schema_of`). Unknown keys are errors, so a
misspelt key never falls back to a default in silence.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass

from dice.errors import DiceError

Config = TypeVar("Config")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field, dataclasses.field))
def stage_config(cls: type[Config]) -> type[Config]:
    """Make `cls` a frozen, keyword-only, strictly validated dataclass whose field docstrings are descriptions."""
    settings = ConfigDict(extra="forbid", use_attribute_docstrings=True, validate_default=True)
    return pydantic_dataclass(config=settings, frozen=True, kw_only=True)(cls)  # type: ignore[return-value]


def parse_config(config_type: type[Config], values: dict[str, Any], where: str) -> Config:
    """Validate `values`. Raises DiceError naming `where` and the first bad field."""
    try:
        return TypeAdapter(config_type).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "config"
        hint = ""
        if first["type"] in ("unexpected_keyword_argument", "extra_forbidden") and len(first["loc"]) == 1:
            known = ", ".join(f.name for f in dataclasses.fields(config_type))  # type: ignore[arg-type]
            hint = f" Known keys: {known}."
        message = first["msg"].replace("a valid tuple", "a list")
        raise DiceError(f"{where}: '{field}': {message}.{hint}") from error


def load_config(
    config_type: type[Config],
    path: str | Path | None,
    overrides: Sequence[str] = (),
    values_by_key: Mapping[str, Any] | None = None,
) -> Config:
    """Read YAML or JSON from `path` (None: all defaults), apply overrides, validate.

    `path` may also be the JSON object itself, as a workflow rule gives it.
    `overrides` are `key.sub=value` texts whose values are YAML; `values_by_key` maps dotted keys to values and wins.
    """
    values: dict[str, Any] = {}
    where = "command line"
    if isinstance(path, str) and path.lstrip().startswith("{"):
        where = "--config"
        try:
            values = json.loads(path)
        except ValueError as error:
            raise DiceError(f"--config: not a JSON object ({error}).") from error
    elif path is not None:
        where = str(path)
        if not Path(path).is_file():
            raise DiceError(f"{path}: no such config file.")
        try:
            loaded = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise DiceError(f"{path}: not valid YAML ({' '.join(str(error).split())}).") from error
        if loaded is not None and not isinstance(loaded, dict):
            raise DiceError(f"{path}: expected a mapping at the top, found {type(loaded).__name__}.")
        values = loaded or {}
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals:
            raise DiceError(f"--set {override}: expected key=value.")
        _assign(values, key, yaml.safe_load(text))
    for key, value in (values_by_key or {}).items():
        _assign(values, key, value)
    return parse_config(config_type, values, where)


def _assign(values: dict[str, Any], key: str, value: Any) -> None:
    *parents, last = key.split(".")
    node = values
    for parent in parents:
        node = node.setdefault(parent, {})
        if not isinstance(node, dict):
            raise DiceError(f"{key}: '{parent}' is not a group of keys.")
    node[last] = value


def to_spec(config: Any) -> dict[str, Any]:
    """The config as plain JSON values."""
    return TypeAdapter(type(config)).dump_python(config, mode="json")


def spec_hash(spec: dict[str, Any]) -> str:
    """sha256 of the canonical JSON of `spec`: the identity of a stage's work."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def schema_of(config_type: type) -> dict[str, Any]:
    """JSON Schema generated from the dataclass; a test keeps the shipped copies equal to it."""
    return TypeAdapter(config_type).json_schema()
