"""The chain of evidence behind a file: the manifests that every stage writes, walked down to the data, with hashes.

Each link has a state:

verified    the file's sha256 is the one that the manifest above it (or its own) wrote down
recorded    the file is not kept (temporary; in a recorded study weights and data), and all that wrote its hash down agree
unverified  nothing wrote a hash down (supplied files and folders), or a stage made it and its manifest is gone
elsewhere   it is not here, and the stage that read it ran outside of these results: training data of a given checkpoint
changed     it has another hash, or its manifest contradicts itself or the one above
missing     it is gone

A folder is compared with its `SHA256SUMS`, or with the manifest of its download, file by file. Commit, times and machine are
shown as a manifest has them; nothing checks these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dice.config import spec_hash
from dice.errors import DiceError
from dice.evidence.recording import HISTORY, Kept
from dice.manifest import MODEL_MANIFEST, Manifest, read_manifest, sha256_file
from dice.study.publish import NOT_CONTENT, SUMS

_WEIGHTS = ".safetensors"
SURE = ("verified", "recorded")
BROKEN = ("changed", "missing")


@dataclass(frozen=True)
class Link:
    """One file or folder of the chain."""

    depth: int
    path: str
    state: str
    sha256: str
    stage: str
    detail: str


@dataclass(frozen=True)
class Place:
    """Where the paths of manifests begin, and the files that were left out there."""

    root: Path = field(default_factory=Path)
    kept: Mapping[str, Kept] = field(default_factory=dict)
    """Of a recorded study; empty elsewhere."""

    def absent(self, path: str) -> str | None:
        """sha256 of a file that was left out, and that nobody has put back; None for any other."""
        kept = self.kept.get(path)
        if kept is None or not kept.left_out or (self.root / path).exists():
            return None
        return kept.sha256


def folder_hashes(folder: Path, manifest: Manifest | None) -> dict[str, str]:
    """sha256 of each file of a folder as it was written down: in `SHA256SUMS`, or when the folder was fetched."""
    sums = folder / SUMS
    if not sums.is_file():
        return dict(manifest.extra.get("files", {})) if manifest else {}
    rows = (line.partition("  ") for line in sums.read_text(encoding="utf-8", errors="replace").splitlines())
    return {name: digest for digest, _, name in rows}


def folder_state(folder: Path, hashes: dict[str, str], absent: Mapping[str, str] | None = None) -> str:
    """`verified` when the folder holds what was written down, and no more; `unverified` where nothing was.

    `absent`: file that was left out -> its sha256; where there are some, the best is `recorded`."""
    if not hashes:
        return "unverified"
    absent = absent or {}
    # a download's manifest names the files at the top, and its tool keeps notes of its own below
    entries = folder.rglob("*") if (folder / SUMS).is_file() else folder.iterdir()
    files = (file for file in entries if file.is_file() and file.name not in (*NOT_CONTENT, MODEL_MANIFEST))
    there = {str(file.relative_to(folder)) for file in files}
    same = there <= hashes.keys() and all(
        (sha256_file(folder / name) if (folder / name).is_file() else absent.get(name)) == digest
        for name, digest in hashes.items()
    )
    return ("recorded" if absent else "verified") if same else "changed"


def inputs_of(place: Path, manifest: Manifest, root: Path | None = None) -> Iterator[tuple[str, str | None]]:
    """(path, recorded sha256 or None) of everything that the stage that made `place` read."""
    root = root or Path()
    for path, digest in manifest.inputs.items():
        # a published model has the history of its training, whose folder may have been deleted since
        published = place / Path(path).name
        yield (str(published) if not (root / path).exists() and (root / published).is_file() else path), digest
    named = [manifest.spec.get(name) for name in ("model", "tokenizer", "candidates", "problems")]
    named.append(_served(manifest))
    for value in named:
        if isinstance(value, str) and value not in manifest.inputs and ("/" in value or (root / value).exists()):
            yield value, None


def _served(manifest: Manifest) -> str | None:
    """Folder of the checkpoint behind a local server; None where no such server answered."""
    local = (manifest.spec.get("server") or {}).get("local") or {}
    return local.get("checkpoint")


def _contradiction(manifest: Manifest, recorded: str | None) -> str:
    """What a manifest says against itself, or against the one above it; empty where all agrees."""
    if spec_hash(manifest.spec) != manifest.spec_hash:
        return "its manifest was edited: the settings in it are not those whose hash it keeps"
    if recorded and manifest.output_sha256 not in (None, recorded):
        return "its manifest is about another file than the one that was read"
    return ""


def _left_out(absent: Mapping[str, str]) -> str:
    """What is said of files that were left out; empty for none."""
    named = ", ".join(f"{name} (sha256 {digest[:16]})" for name, digest in absent.items())
    return f"left out of the record: {named}" if named else ""


def _is_below(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def chain(
    path: str,
    results: Path,
    recorded: str | None = None,
    depth: int = 0,
    seen: set[str] | None = None,
    ran_here: bool = True,
    where: Place | None = None,
) -> Iterator[Link]:
    """The links from `path` down, each file once.

    `results`: the folder in which every file was made by a stage; `ran_here`: whether the stage that read `path` wrote there.
    """
    where = where or Place()
    seen = set() if seen is None else seen
    if path in seen:
        return
    seen.add(path)
    place = where.root / path
    try:
        manifest = read_manifest(place)
        detail = _contradiction(manifest, recorded) if manifest else ""
    except DiceError as error:
        manifest, detail = None, str(error)
    wrong, absent = bool(detail), {}
    stage = manifest.stage if manifest else "no manifest"
    if manifest and not wrong:
        gpus = ", ".join(gpu.name for gpu in manifest.gpus) or "no GPU"
        commit = (manifest.git_commit or "no commit")[:12] + (" with local changes" if manifest.git_dirty else "")
        detail = f"{manifest.started}, {manifest.wall_s:.0f} s, {gpus}, image {manifest.image}, {commit}"
    if place.is_file():
        digest = sha256_file(place)
        known = recorded or (manifest.output_sha256 if manifest else None)
        state = "unverified" if known is None else ("verified" if known == digest else "changed")
        by_a_stage = _is_below(place, results)
        if not manifest and state == "verified" and by_a_stage and place.name != HISTORY and place.suffix != _WEIGHTS:
            state, detail = "unverified", "its manifest is gone: what it was made from is not known"
    elif place.is_dir():
        weights = list(place.glob(f"*{_WEIGHTS}"))
        digest = sha256_file(weights[0]) if len(weights) == 1 else ""
        hashes = folder_hashes(place, manifest)
        absent = {name: found for name in hashes if (found := where.absent(f"{path}/{name}"))}
        state = folder_state(place, hashes, absent)
    else:
        digest, state = "", "missing" if ran_here and not where.kept else "elsewhere"
        if kept := where.absent(path):
            digest, state, absent = kept, "recorded" if recorded in (None, kept) else "changed", {place.name: kept}
        elif manifest and recorded and recorded == manifest.output_sha256:
            digest, state = recorded, "recorded"
        elif path in where.kept:
            state = "missing"
    detail = "; ".join(filter(None, (detail, _left_out(absent))))
    yield Link(depth, path, "changed" if wrong else state, digest or (recorded or ""), stage, detail)
    if manifest:
        here = wrong or _is_below(where.root / (manifest.spec.get("out") or place), results)
        for child, child_hash in inputs_of(Path(path), manifest, where.root):
            yield from chain(child, results, child_hash, depth + 1, seen, here, where)
        weights = manifest.extra.get("weights") if manifest.stage in ("generate", "ask") else None
        for name, digest in (weights or {}).items():
            folder = _served(manifest) or manifest.spec["model"]
            yield from chain(str(Path(folder) / name), results, digest, depth + 1, seen, where=where)
