"""`dice fetch`: a released checkpoint, or files of a data set, from the Hugging Face hub, by commit.

    dice fetch --hub Qwen/Qwen3-8B --revision b968826d9c46dd6066d109eabc6255188de91218 --out checkpoints/qwen3
    dice fetch --kind dataset --hub lkongam/ConCuR --files data-00000-of-00001.arrow --out data

Size and licence are printed before anything is loaded, and a disk that is too small is refused. The folder gets the files
of one commit and `model.manifest.json`, which names that commit in full, the licence and every file's sha256; large files
must have the sha256 that the hub names. A connection that is cut goes on at the byte where it was. After an interruption the
same command goes on with the files that are not whole: the hub's client keeps no part of a file for another process, so
what a killed one left is deleted.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Literal

from dice.config import add_options, config_from, stage_config, to_spec
from dice.errors import DISK_FULL, DiceError
from dice.manifest import Stopwatch, sha256_file, write_manifest

ABBREVIATED = re.compile(r"[0-9a-f]{7,39}")
"""A commit as the hub's pages show it; the hub itself takes only all 40 digits."""
IGNORED = ("*.bin", "*.pth", "*.pt", "*.gguf", "*.onnx", "original/*")
"""Other copies of the weights; safetensors are what is loaded."""


class HubUnreachable(DiceError):
    """The hub, or this repository of it, cannot be read; the cause is chained."""


def full_commit(repository: str, wanted: str, *, repo_type: str = "model") -> str:
    """All 40 digits of an abbreviated commit; a full commit, a branch or a tag is given back as it is.

    Raises HubUnreachable, and DiceError when no commit of `main`, or more than one, begins so.
    """
    if not ABBREVIATED.fullmatch(wanted):
        return wanted
    try:
        from huggingface_hub import HfApi

        commits = [commit.commit_id for commit in HfApi().list_repo_commits(repository, repo_type=repo_type)]
    except Exception as error:  # the errors of whichever HTTP client the library uses; all mean the same here
        raise _unreachable(repository, error) from error
    matches = [commit for commit in commits if commit.startswith(wanted)]
    if len(matches) != 1:
        raise DiceError(f"{repository} on the hub: {len(matches)} commits start with {wanted}; give --revision.")
    return matches[0]


def _unreachable(repository: str, error: BaseException) -> HubUnreachable:
    if type(error).__name__ == "GatedRepoError":
        return HubUnreachable(
            f"{repository} is gated: accept its licence at https://huggingface.co/{repository}, and set HF_TOKEN to a "
            "token of that account."
        )
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return HubUnreachable(
        f"{repository}: the Hugging Face hub cannot be read ({reason}); check network, name, HF_TOKEN."
    )


@stage_config
class FetchConfig:
    """What `dice fetch` takes."""

    hub: str
    """Repository: `Qwen/Qwen3-8B`."""
    out: str
    """Folder to fill."""
    revision: str | None = None
    """Commit (all 40 digits, or at least 7), branch or tag; None: the newest commit of `main`."""
    kind: Literal["model", "dataset"] = "model"
    """What the repository is."""
    files: tuple[str, ...] = ()
    """Files to take, by name or pattern; none: all but other copies of the weights."""
    mirror: str | None = None
    """Folder that stands for the hub, with the files of each repository in `<owner>/<name>`; it knows no commits."""


def fetch(config: FetchConfig) -> str | None:
    """Fetch the files; returns the commit, None of a mirror.

    Raises HubUnreachable, and DiceError for a commit that is not there, a disk that is too small and a damaged file."""
    watch = Stopwatch()
    if config.mirror is not None:
        return _copy(config, Path(config.mirror) / config.hub, watch)
    wanted = full_commit(config.hub, config.revision or "main", repo_type=config.kind)
    folder, patterns = Path(config.out), list(config.files) or None
    try:
        from huggingface_hub import HfApi, snapshot_download
        from huggingface_hub.utils import filter_repo_objects

        info: Any = HfApi().repo_info(config.hub, revision=wanted, repo_type=config.kind, files_metadata=True)
        found = filter_repo_objects(
            info.siblings or [], allow_patterns=patterns, ignore_patterns=list(IGNORED), key=lambda one: one.rfilename
        )
        files = {one.rfilename: one for one in found}
        _delete_parts(folder)
        licence = _announce(config, info, files)
        snapshot_download(
            config.hub,
            repo_type=config.kind,
            revision=info.sha,
            local_dir=folder,
            allow_patterns=patterns,
            ignore_patterns=list(IGNORED),
        )
    except DiceError:
        raise
    except Exception as error:  # as above; a broken connection names itself
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            raise  # the hub is well; `dice` says what to do
        raise _unreachable(config.hub, error) from error
    digests = {name: sha256_file(folder / name) for name in sorted(files)}
    for name, one in files.items():
        if one.lfs is not None and one.lfs.sha256 != digests[name]:
            (folder / name).unlink()
            raise DiceError(f"{folder / name}: damaged on the way (its sha256 is not the hub's); run it again.")
    write_manifest(
        folder / "model",
        stage="fetch",
        spec=to_spec(config),
        watch=watch,
        extra={"commit": info.sha, "licence": licence, "files": digests},
    )
    return str(info.sha)


def _delete_parts(folder: Path) -> None:
    """Delete what a killed download left of files that were on their way: each process names its parts anew."""
    for part in (folder / ".cache" / "huggingface" / "download").rglob("*.incomplete"):
        part.unlink(missing_ok=True)


def _copy(config: FetchConfig, repository: Path, watch: Stopwatch) -> None:
    if not repository.is_dir():
        raise DiceError(f"{repository}: the mirror has no such repository.")
    folder = Path(config.out)
    shutil.copytree(repository, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*IGNORED))
    digests = {path.name: sha256_file(path) for path in sorted(folder.iterdir()) if path.is_file()}
    if not any(name.endswith(".safetensors") for name in digests):
        raise DiceError(f"{repository}: no safetensors in it, so there is nothing to load.")
    extra = {"commit": None, "licence": None, "files": digests}
    write_manifest(folder / "model", stage="fetch", spec=to_spec(config), watch=watch, extra=extra)


def _announce(config: FetchConfig, info: Any, files: dict[str, Any]) -> str | None:
    """Print what is to be loaded; returns the licence that the repository names.

    Raises DiceError where the files are not what is wanted, or do not fit the disk."""
    where = f"{config.hub} at {info.sha}"
    if not files:
        raise DiceError(f"{where}: no files {', '.join(config.files)} in it.")
    if config.kind == "model" and not any(name.endswith(".safetensors") for name in files):
        raise DiceError(f"{where}: no safetensors in it, so there is nothing to load.")
    licence = info.card_data.get("license") if info.card_data else None
    sizes = {name: one.size or 0 for name, one in files.items()}
    here = Path(config.out)
    missing = sum(size for name, size in sizes.items() if not (here / name).is_file())
    gated = ", gated" if getattr(info, "gated", False) else ""
    print(
        f"fetch: {where}: {len(files)} files, {sum(sizes.values()) / 1e9:.2f} GB, "
        f"licence {licence or 'not named'}{gated}",
        file=sys.stderr,
        flush=True,
    )
    here.mkdir(parents=True, exist_ok=True)
    if missing > (free := shutil.disk_usage(here).free):
        raise DiceError(f"{where}: {missing / 1e9:.1f} GB are missing, and {config.out} has {free / 1e9:.1f} GB left.")
    return licence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice fetch`."""
    add_options(parser, FetchConfig, "hub", "revision", "kind", "files", "mirror", "out")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice fetch`."""
    config = config_from(args, FetchConfig)
    commit = fetch(config)
    print(f"{config.hub} {f'at {commit}' if commit else f'of {config.mirror}'} is in {config.out}")
    return 0
