"""Reference pages that are made from the code whenever the site is built.

A page says where by a comment, `<!-- generated: commands -->`; Markdown takes its place before Sphinx parses the page,
so headings have anchors and links are checked as in any other page.
"""

from __future__ import annotations

import argparse
import builtins
import dataclasses
import importlib
import inspect
import json
import re
import sys
import tomllib
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import TypeAdapter
from pydantic_core import PydanticUndefined
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from dice.cli import STAGES, make_parser

ROOT = Path(__file__).resolve().parents[2]
PLACE = re.compile(r"<!-- generated: (\w+) -->")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table; line ends and bars inside cells are made harmless."""
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    lines = [" | ".join(row) for row in [list(head), ["---"] * len(head), *cells]]
    return "\n".join(f"| {line} |" for line in lines)


# ---- commands ----


def commands() -> str:
    """Every `dice <stage>` with its arguments, from the argparse parsers."""
    parser = make_parser(*STAGES)
    (stages,) = (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    assert stages is not None
    return "\n\n".join(_command(name, stages[name]) for name in STAGES)


def _command(stage: str, parser: argparse.ArgumentParser) -> str:
    module_name, summary = STAGES[stage]
    config = config_of(stage)
    settings = f" Settings: [{config.__name__}](settings.md#{anchor(config)})." if config else ""
    rows = [
        (
            ", ".join(f"`{name}`" for name in action.option_strings) or f"`{action.metavar or action.dest}`",
            _help(action),
        )
        for action in parser._actions
        if not isinstance(action, argparse._HelpAction)
    ]
    usage = parser.format_usage().removeprefix("usage: ")
    text = f"## dice {stage}\n\n{summary[0].upper()}{summary[1:]} (`{module_name}`).{settings}\n\n```text\n{usage}```"
    return f"{text}\n\n{table(('argument', 'meaning'), rows)}" if rows else text


def _help(action: argparse.Action) -> str:
    """The argument's help as argparse prints it, with its choices and whether it must be given."""
    text = (action.help or "") % {**vars(action), "prog": "dice"}
    choices = ", ".join(f"`{choice}`" for choice in action.choices or ())
    required = "required" if action.required and action.nargs != "*" else ""
    return "; ".join(part for part in (text, choices, required) if part)


# ---- settings ----


def config_of(stage: str) -> type | None:
    """The dataclass that holds a stage's settings: the one that the help of its `--config` names."""
    module = importlib.import_module(STAGES[stage][0])
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    helps = (action.help or "" for action in parser._actions if "--config" in action.option_strings)
    named = re.search(r"\b[A-Z]\w*Config\b", " ".join(helps))
    return getattr(module, named.group()) if named else None


def roots() -> dict[str, type]:
    """What a reader starts from: the study's files, then every stage's settings; title -> dataclass."""
    from dice.study.config import Study
    from dice.study.registry import Registry

    found: dict[str, type] = {
        "Scales (`experiments/config`)": Study,
        "Models, tables, figures and claims (`experiments`)": Registry,
    }
    for stage in STAGES:
        config = config_of(stage)
        if config is not None:
            found[f"`dice {stage}`"] = config
    return found


def is_config(kind: Any) -> bool:
    """Whether `kind` is a class made by `stage_config`."""
    return inspect.isclass(kind) and dataclasses.is_dataclass(kind) and hasattr(kind, "__pydantic_fields__")


def groups(config: type) -> Iterator[type]:
    """`config` and the groups of settings below it, each once, in the order of their fields."""
    seen: dict[type, None] = {}

    def visit(kind: Any) -> None:
        if is_config(kind) and kind not in seen:
            seen[kind] = None
            for field in kind.__pydantic_fields__.values():
                visit(field.annotation)
        for part in get_args(kind):
            visit(part)

    visit(config)
    yield from seen


def settings() -> str:
    """Every setting of every dataclass, from the fields and their docstrings."""
    told: set[type] = set()
    parts: list[str] = []
    for title, config in roots().items():
        new = [kind for kind in groups(config) if kind not in told]
        told.update(new)
        if new:
            parts += [f"## {title}", *map(_settings_of, new)]
    return "\n\n".join(parts)


def anchor(config: type) -> str:
    """Anchor of a dataclass on the settings page."""
    return config.__name__.lower()


def _settings_of(config: Any) -> str:
    rows = [
        (
            f"`{name}`",
            "; ".join([type_name(field.annotation), *_bounds(field)]),
            _default(field),
            _in_yaml(field.description or ""),
        )
        for name, field in config.__pydantic_fields__.items()
    ]
    title = f"### {config.__name__}\n\n`{config.__module__}`. {inspect.getdoc(config)}"
    return f"{title}\n\n{table(('field', 'type', 'default', 'meaning'), rows)}"


def type_name(kind: Any) -> str:
    """A type in words, as Markdown; a group of settings is a link to its table."""
    parts = get_args(kind)
    match get_origin(kind):
        case typing.Literal:
            return " or ".join(f"`{value}`" for value in parts)
        case typing.Annotated:
            return type_name(parts[0])
        case types.UnionType | typing.Union:
            return " or ".join(type_name(part) for part in parts)
        case builtins.tuple:
            return "list of " + type_name(parts[0]) if parts[-1] is ... else "list: " + ", ".join(map(type_name, parts))
        case builtins.list:
            return "list of " + type_name(parts[0])
        case builtins.dict:
            return f"mapping of {type_name(parts[0])} to {type_name(parts[1])}"
    if is_config(kind):
        return f"[{kind.__name__}](#{anchor(kind)})"
    return _WORDS.get(kind) or f"`{kind.__name__}`"


def _in_yaml(text: str) -> str:
    """A field's docstring with Python's constants as a configuration file has them."""
    return re.sub(r"\b(None|True|False)\b", lambda word: _CONSTANTS[word.group()], text)


_CONSTANTS = {"None": "`null`", "True": "`true`", "False": "`false`"}
_WORDS = {type(None): "`null`", Any: "any", str: "text", int: "integer", float: "number", bool: "`true` or `false`"}


def _bounds(field: Any) -> list[str]:
    """What a value must satisfy besides its type."""
    signs = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
    return [
        f"{sign} {getattr(bound, name):g}"
        for bound in field.metadata
        for name, sign in signs.items()
        if hasattr(bound, name)
    ]


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.default_factory() if field.default is PydanticUndefined else field.default
    return "see there" if is_config(type(value)) else f"`{json.dumps(to_spec_value(value))}`"


def to_spec_value(value: Any) -> Any:
    """A default as it stands in YAML or JSON."""
    return TypeAdapter(Any).dump_python(value, mode="json")


# ---- findings ----


def findings() -> str:
    """The findings of the checks, with the red team's tricks that must give each and the honest candidates that must not."""
    from dice.kernels.checks.catalogue import CATALOGUE

    sys.path.insert(0, str(ROOT / "tests" / "red_team"))
    from corpus import corpus

    tricks, honest = corpus("tricks"), corpus("honest")

    def names(candidates: list[str]) -> str:
        return ", ".join(f"`{name}`" for name in candidates) or "-"

    meanings, tests = [], []
    for name, trick in CATALOGUE.items():
        fatal = ", ".join(protocol for protocol in ("paper", "strict") if getattr(trick, protocol)) or "-"
        rule = trick.rule.removeprefix("paper_")
        meanings.append((f"`{name}`", rule, trick.source, fatal, f"{trick.meaning} *How:* {trick.seen}"))
        caught = [one.name for one in tricks if name in one.findings]
        spared = [one.name for one in honest if name in one.near]
        tests.append((f"`{name}`", names(caught), names(spared)))
    first = table(("finding", "rule", "seen", "fatal under", "meaning"), meanings)
    second = table(("finding", "red team", "honest near miss"), tests)
    return f"{first}\n\n## Tests\n\n{second}"


# ---- conditions ----


def conditions() -> str:
    """The conditions of the protocol `robust`, in the order in which they are tried."""
    from dice.kernels.conditions.table import CONDITIONS

    def remark(one: Any) -> str:
        parts = ("" if one.decides else "a warning", "CPU back end" if one.on_cpu_only else "")
        return ", ".join(part for part in parts if part) or "-"

    rows = [(f"`{name}`", one.meaning, remark(one)) for name, one in CONDITIONS.items()]
    return table(("condition", "what is other", "remark"), rows)


# ---- layers ----


def layers() -> str:
    """The verifier's layers, from the contract that import-linter enforces, with the first sentence of each module."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (contract,) = (one for one in contracts if one["type"] == "layers" and one.get("containers") == ["dice.kernels"])
    modules = [[f"dice.kernels.{name}" for name in layer.split(" | ")] for layer in contract["layers"]]
    rows = [
        (f"`{name}`", str(number), _first_sentence(name)) for number, names in enumerate(modules, 1) for name in names
    ]
    return table(("module", "layer", "what it is"), rows)


def _first_sentence(module: str) -> str:
    text = " ".join((importlib.import_module(module).__doc__ or "").split("\n\n")[0].split())
    return text.split(". ")[0].rstrip(".") + "."


# ---- operators of the generator ----


def operators() -> str:
    """The generator's operators by group, how many each scale draws for training, and what is held out."""
    from dice.data.synthetic.table import TINY, known

    every = known()
    trained = [entry for entry in every.values() if not entry.held_out]
    groups: dict[str, list[str]] = {entry.group: [] for entry in every.values()}
    for name, entry in every.items():
        groups[entry.group].append(name + ("\\*" if entry.held_out else "") + ("°" if name in TINY else ""))
    rows = [(f"`{group}`", str(len(names)), ", ".join(names)) for group, names in groups.items()]
    count = f"{len(every)} operators. For training, `nano` draws {len(trained)}, `tiny` the {len(TINY)} with a ring."
    return f"{count}\n\n{table(('group', 'operators', 'names'), rows)}"


GENERATORS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "settings": settings,
    "findings": findings,
    "conditions": conditions,
    "layers": layers,
    "operators": operators,
}


def fill(app: Sphinx, name: str, source: list[str]) -> None:
    """Put what a page asks for in its place. Raises ExtensionError for a name that no generator has."""

    def made(match: re.Match[str]) -> str:
        if match.group(1) not in GENERATORS:
            raise ExtensionError(f"{name}: nothing generates '{match.group(1)}'; there are {', '.join(GENERATORS)}.")
        return GENERATORS[match.group(1)]()

    source[0] = PLACE.sub(made, source[0])


def always(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Pages that are read again at each build, since the code may have changed while the page has not."""
    return [page for page in env.found_docs if PLACE.search(Path(env.doc2path(page)).read_text(encoding="utf-8"))]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", fill)
    app.connect("env-get-outdated", always)
    return {"parallel_read_safe": True}
