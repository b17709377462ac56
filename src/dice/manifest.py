"""The manifest beside every result: what made it, from what, where, and how long it took.

`results/x.jsonl` gets `results/x.jsonl.manifest.json`. It is evidence for audits and never an input of a stage.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import runpy
import subprocess
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from dice import __version__
from dice.config import spec_hash
from dice.errors import DiceError
from dice.jsonl import write_text

SCHEMA_VERSION = 1
MANIFEST_SUFFIX = ".manifest.json"
MODEL_MANIFEST = "model.manifest.json"
"""A model's, inside its folder."""


class Gpu(BaseModel):
    """One GPU as the driver names it."""

    name: str
    driver: str
    memory_mib: int | None
    """None: the driver does not say, as for a GPU that shares the processor's memory."""


class Manifest(BaseModel):
    """Who, what, where, when of one result file."""

    schema_version: int = SCHEMA_VERSION
    stage: str
    spec: dict[str, Any]
    spec_hash: str
    inputs: dict[str, str]
    output_sha256: str | None
    dice_version: str
    git_commit: str | None
    git_dirty: bool | None
    image: str
    python: str
    torch: str | None
    cuda: str | None
    gpus: list[Gpu]
    cpu: str
    seeds: list[int]
    started: str
    wall_s: float
    extra: dict[str, Any] = {}


def sha256_text(text: str) -> str:
    """Hex sha256 of a text as UTF-8; a lone surrogate counts as what it is."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def sha256_file(path: str | Path) -> str:
    """Hex sha256 of a file's bytes."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def weights_sha256(folder: str | Path) -> dict[str, str]:
    """File name -> hex sha256, of each file of weights in a checkpoint's folder, in the order of their names."""
    return {path.name: sha256_file(path) for path in sorted(Path(folder).glob("*.safetensors"))}


def _output_of(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _mebibytes(text: str) -> int | None:
    try:
        return int(float(text))
    except ValueError:  # nvidia-smi writes [N/A] for what a GPU does not tell
        return None


def visible_gpus() -> list[Gpu]:
    """GPUs that this process may use, in its own order (CUDA_VISIBLE_DEVICES); empty where there is no driver."""
    text = _output_of(
        "nvidia-smi", "--query-gpu=uuid,name,driver_version,memory.total", "--format=csv,noheader,nounits"
    )
    found: dict[str, Gpu] = {}
    for line in (text or "").splitlines():
        uuid, name, driver, memory = (part.strip() for part in line.split(","))
        found[uuid] = Gpu(name=name, driver=driver, memory_mib=_mebibytes(memory))
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return list(found.values())
    gpus = []
    for entry in filter(None, (part.strip() for part in named.split(","))):
        uuids = (
            list(found)[int(entry) : int(entry) + 1] if entry.isdecimal() else [u for u in found if u.startswith(entry)]
        )
        if not uuids:
            break  # the driver too ignores what follows an entry that does not exist
        gpus.append(found[uuids[0]])
    return gpus


def cpu_model() -> str:
    """The processor's name and the number of usable cores."""
    name = platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    except OSError:
        pass  # not Linux: the machine type is what there is
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def torch_versions() -> tuple[str | None, str | None]:
    """PyTorch's own version and its CUDA's, without the seconds that importing it takes; None where there is none."""
    spec = importlib.util.find_spec("torch")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        facts = runpy.run_path(str(Path(folder) / "version.py"))
        return facts["__version__"], facts["cuda"]
    return None, None


class Stopwatch:
    """Start and wall time of a stage."""

    def __init__(self) -> None:
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self._t0 = time.monotonic()

    @property
    def wall_s(self) -> float:
        """Seconds since construction."""
        return time.monotonic() - self._t0


def manifest_path(output: str | Path) -> Path:
    """Where the manifest of `output` lies."""
    output = Path(output)
    return output.with_name(output.name + MANIFEST_SUFFIX)


def read_manifest(output: str | Path) -> Manifest | None:
    """Manifest of a result, beside it or (a model's) inside its folder; None where there is none.

    Raises DiceError for one that is damaged."""
    for place in (manifest_path(output), Path(output) / MODEL_MANIFEST):
        if place.is_file():
            try:
                return Manifest.model_validate_json(place.read_bytes())
            except ValidationError as error:
                raise DiceError(f"{place}: not a manifest ({error.errors()[0]['msg']}).") from error
    return None


def write_manifest(
    output: str | Path,
    *,
    stage: str,
    spec: dict[str, Any],
    watch: Stopwatch,
    inputs: Iterable[str | Path] = (),
    seeds: Iterable[int] = (),
    extra: dict[str, Any] | None = None,
) -> Manifest:
    """Collect the facts and write them beside `output` atomically.

    `inputs` are files whose sha256 is recorded. The container image comes from `DICE_IMAGE` (a digest set by the
    image itself), `host` otherwise.
    """
    torch, cuda = torch_versions()
    here = Path(__file__).parent
    commit = _output_of("git", "-C", str(here), "rev-parse", "HEAD")
    status = _output_of("git", "-C", str(here), "status", "--porcelain") if commit else None
    output = Path(output)
    manifest = Manifest(
        stage=stage,
        spec=spec,
        spec_hash=spec_hash(spec),
        inputs={path: sha256_file(path) for path in dict.fromkeys(map(str, inputs))},
        output_sha256=sha256_file(output) if output.is_file() else None,
        dice_version=__version__,
        git_commit=commit,
        git_dirty=None if status is None else bool(status),
        image=os.environ.get("DICE_IMAGE", "host"),
        python=platform.python_version(),
        torch=torch,
        cuda=cuda,
        gpus=visible_gpus(),
        cpu=cpu_model(),
        seeds=list(seeds),
        started=watch.started,
        wall_s=round(watch.wall_s, 3),
        extra=extra or {},
    )
    write_text(manifest_path(output), manifest.model_dump_json(indent=2) + "\n")
    return manifest
