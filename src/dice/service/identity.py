"""What verdicts of a service depend on besides candidate and problem, as one hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

import dice
from dice.config import spec_hash, to_spec
from dice.manifest import torch_versions, visible_gpus
from dice.service.settings import ServeConfig


def identity(config: ServeConfig) -> str:
    """Hash of the settings that change a verdict, of versions, of the verifier's own code, and of the GPUs' names."""
    spec = to_spec(config)
    facts = {key: spec[key] for key in ("backend", "judging", "limits")}
    facts["versions"] = [dice.__version__, *torch_versions(), verifier_sha256()]
    facts["gpus"] = sorted({gpu.name for gpu in visible_gpus()}) if config.backend == "cuda" else []
    return spec_hash(facts)


def verifier_sha256() -> str:
    """Hash of all files of `dice.kernels`."""
    root = Path(dice.__file__).parent / "kernels"
    total = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        content = path.read_bytes()
        total.update(f"{path.relative_to(root)} {len(content)}\n".encode() + content)
    return total.hexdigest()
