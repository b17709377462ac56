"""`dice schema`: the published JSON Schemas of the files between stages and of the stages' configuration.

They are generated from the code; a test keeps the copies under docs/schema/ equal to it.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from dice.errors import DiceError
from dice.jsonl import write_text
from dice.study.config import study_schema

ROWS = {
    "verdict": "dice.kernels.api:Verdict",
    "problem": "dice.kernels.api:Problem",
    "pair": "dice.data.pair:Pair",
    "answer": "dice.servers.answers:Answer",
    "manifest": "dice.manifest:Manifest",
    "rl_config": "dice.training.rl_config:RlConfig",
    "rl_history": "dice.training.rl_history:RlRow",
    "verify_config": "dice.kernels.api:VerifyConfig",
}


def schemas() -> dict[str, dict[str, Any]]:
    """Name -> JSON Schema of every published row and configuration type, and of a scale's configuration (`study`)."""
    found = {"study": study_schema()}
    for name, place in ROWS.items():
        module, _, attribute = place.partition(":")
        found[name] = TypeAdapter(getattr(importlib.import_module(module), attribute)).json_schema()
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to write."""
    parser.add_argument("--out", default="docs/schema", help="folder for NAME.schema.json")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file differs from the code")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice schema`."""
    folder = Path(args.out)
    for name, schema in schemas().items():
        path = folder / f"{name}.schema.json"
        text = json.dumps(schema, indent=2, sort_keys=True) + "\n"
        if not args.check:
            write_text(path, text)
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            raise DiceError(f"{path}: differs from the code; run `dice schema` and commit the result.")
    return 0
