"""What the loader of an extension needs to know, kept in the shared object itself, behind its ELF image."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dice.errors import HarnessError

_MAGIC = b"DICE-SO1"


def append_facts(path: Path, facts: dict[str, Any]) -> None:
    """Write what the loader needs behind the ELF image of `path`, where dynamic loaders ignore it."""
    text = json.dumps(facts).encode()
    with path.open("ab") as stream:
        stream.write(text + len(text).to_bytes(4, "little") + _MAGIC)


def object_facts(path: str | Path) -> dict[str, Any]:
    """The loader's facts in a shared object. Raises HarnessError when it is not from a cache."""
    try:
        with open(path, "rb") as stream:
            stream.seek(-12, os.SEEK_END)
            tail = stream.read(12)
            if tail[4:] != _MAGIC:
                raise HarnessError(f"{path}: not an object of the build cache.")
            size = int.from_bytes(tail[:4], "little")
            stream.seek(-12 - size, os.SEEK_END)
            return json.loads(stream.read(size))
    except (OSError, ValueError) as error:
        raise HarnessError(f"{path}: the object is missing or damaged ({error}).") from error
