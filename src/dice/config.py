"""Typed stage configuration: dataclasses in code, YAML for what a reader changes, overrides on the command line.

A stage declares a pydantic dataclass made by `@stage_config`; every field is followed by one line of meaning and
unit, which becomes its description in the generated JSON Schema (`schema_of`) and its help on the command line
(`add_options`). Unknown keys are errors, so a misspelt key never falls back to a default in silence.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, dataclass_transform, get_args, get_origin

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.fields import FieldInfo

from dice.errors import DiceError

Config = TypeVar("Config")

COMMAND_LINE = "command line"
"""Where values come from that no file gives."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C takes a tenth of the time: planning a scale reads thousands of lines."""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field, dataclasses.field))
def stage_config(cls: type[Config]) -> type[Config]:
    """Make `cls` a frozen, keyword-only, strictly validated dataclass whose field docstrings are descriptions."""
    settings = ConfigDict(extra="forbid", use_attribute_docstrings=True, validate_default=True)
    return pydantic_dataclass(config=settings, frozen=True, kw_only=True)(cls)  # pyright: ignore[reportReturnType]


def parse_config(config_type: type[Config], values: dict[str, Any], where: str) -> Config:
    """Validate `values`. Raises DiceError naming `where` and the first bad field."""
    try:
        return TypeAdapter(config_type).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "config"
        hint = ""
        if first["type"] in ("unexpected_keyword_argument", "extra_forbidden") and len(first["loc"]) == 1:
            known = ", ".join(f.name for f in dataclasses.fields(config_type))  # pyright: ignore[reportArgumentType]
            hint = f" Known keys: {known}."
        elif first["type"] == "missing" and where == COMMAND_LINE:
            hint = f" Give its option (see --help), or --set {field}=VALUE."
        message = first["msg"].replace("a valid tuple", "a list")
        raise DiceError(f"{where}: '{field}': {message}.{hint}") from error


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML file, `{}` for an empty one. Raises DiceError where there is no file or something else in it."""
    if not Path(path).is_file():
        raise DiceError(f"{path}: no such file.")
    try:
        values = yaml.load(Path(path).read_text(encoding="utf-8"), _LOADER)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DiceError(f"{path}: not valid YAML ({' '.join(str(error).split())}).") from error
    if values is not None and not isinstance(values, dict):
        raise DiceError(f"{path}: expected a mapping at the top, found {type(values).__name__}.")
    return values or {}


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
    where = COMMAND_LINE
    if isinstance(path, str) and path.lstrip().startswith("{"):
        where = "--config"
        try:
            values = json.loads(path)
        except ValueError as error:
            raise DiceError(f"--config: not a JSON object ({error}).") from error
    elif path is not None:
        where = str(path)
        values = read_yaml(path)
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals:
            raise DiceError(f"--set {override}: expected key=value.")
        try:
            _assign(values, key, yaml.safe_load(text))
        except yaml.YAMLError as error:
            raise DiceError(f"--set {override}: not valid YAML ({' '.join(str(error).split())}).") from error
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


_SET_HELP = "set one field, `--set group.field=value`; can be given several times"


def add_options(parser: argparse.ArgumentParser, config_type: type, /, *fields: str, **renamed: str) -> None:
    """Add `--config`, `--set` and an option for each of `fields`; `renamed` maps an option's name to a dotted field.

    Help, choices and the default that is shown are the field's own; of a field that may be None, `None:` becomes
    `without it:`. An option of a boolean field takes no value and turns the field's default over; one of a tuple takes
    one value or more. Values are checked by `config_from`.
    """
    for name, path in {**{field: field for field in fields}, **renamed}.items():
        field = _field(config_type, path)
        if field is None:
            raise TypeError(f"{config_type.__name__} has no field '{path}'.")
        help_text = " ".join((field.description or "").split()).replace("None:", "without it:")
        kinds = (field.annotation, *get_args(field.annotation))
        keywords: dict[str, Any] = {"dest": path, "default": None}
        if bool in kinds:
            keywords |= {"action": "store_const", "const": not field.default}
            help_text = f"Turns this off: {help_text}" if field.default else help_text
        else:
            choices = next((list(get_args(kind)) for kind in kinds if get_origin(kind) is Literal), None)
            several = any(get_origin(kind) is tuple for kind in kinds)
            keywords |= {"choices": choices, "nargs": "+" if several else None}
            keywords |= {} if choices else {"metavar": name.upper()}
            if field.is_required():
                help_text = f"{help_text} (required)"
            elif field.default not in (None, ()):
                shown = " ".join(map(str, field.default)) if several else field.default
                help_text = f"{help_text} (default: {shown})"
        parser.add_argument(f"--{name.replace('_', '-')}", help=help_text.replace("%", "%%"), **keywords)
    parser.add_argument(
        "--config", help=f"YAML file with any field of {config_type.__name__}, or the JSON object itself"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=_SET_HELP)


def config_from(
    args: argparse.Namespace, config_type: type[Config], values_by_key: Mapping[str, Any] | None = None
) -> Config:
    """Options over `--set` over `--config` over defaults. Raises DiceError.

    Every option whose `dest` is a dotted field sets that field; `values_by_key` has what the stage made of others.
    None: not given.
    """
    given = {key: value for key, value in vars(args).items() if _field(config_type, key)}
    given |= values_by_key or {}
    return load_config(config_type, args.config, args.set, {k: v for k, v in given.items() if v is not None})


def _field(config_type: Any, path: str) -> FieldInfo | None:
    first, _, rest = path.partition(".")
    field = getattr(config_type, "__pydantic_fields__", {}).get(first)
    return _field(field.annotation, rest) if field and rest else field


def to_spec(config: Any) -> dict[str, Any]:
    """The config as plain JSON values."""
    return TypeAdapter(type(config)).dump_python(config, mode="json")


def canonical(spec: dict[str, Any]) -> str:
    """The JSON text of a spec: one text for one meaning."""
    return json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def spec_hash(spec: dict[str, Any]) -> str:
    """sha256 of the canonical JSON of `spec`: the identity of a stage's work."""
    return hashlib.sha256(canonical(spec).encode()).hexdigest()


def schema_of(config_type: type) -> dict[str, Any]:
    """JSON Schema generated from the dataclass; a test keeps the shipped copies equal to it."""
    return TypeAdapter(config_type).json_schema()
