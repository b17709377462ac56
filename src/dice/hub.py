"""`dice fetch`: a released checkpoint from the Hugging Face hub, by commit.

    dice fetch --hub Qwen/Qwen3-8B --revision b968826d9c46dd6066d109eabc6255188de91218 --out checkpoints/qwen3

The folder gets the files of one commit and `model.manifest.json`, which names that commit in full and every file's
sha256. An interrupted download goes on where it stopped when the same folder is given again.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from dice.config import add_options, config_from, stage_config, to_spec
from dice.errors import DiceError
from dice.manifest import MODEL_MANIFEST, Stopwatch, sha256_file, write_manifest

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


def fetch(config: FetchConfig) -> str:
    """Fetch the checkpoint; returns its commit. Raises HubUnreachable, and DiceError for a commit that is not there."""
    watch = Stopwatch()
    wanted = full_commit(config.hub, config.revision or "main")
    try:
        from huggingface_hub import HfApi, snapshot_download

        commit = HfApi().model_info(config.hub, revision=wanted).sha
        snapshot_download(config.hub, revision=commit, local_dir=config.out, ignore_patterns=list(IGNORED))
    except Exception as error:  # as above; a full disk and a broken connection name themselves
        raise _unreachable(config.hub, error) from error
    folder = Path(config.out)
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != MODEL_MANIFEST)
    if not any(path.suffix == ".safetensors" for path in files):
        raise DiceError(f"{config.hub} at {commit}: no safetensors in it, so there is nothing to load.")
    write_manifest(
        folder / "model",
        stage="fetch",
        spec=to_spec(config),
        watch=watch,
        extra={"commit": commit, "files": {path.name: sha256_file(path) for path in files}},
    )
    return str(commit)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice fetch`."""
    add_options(parser, FetchConfig, "hub", "revision", "out")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice fetch`."""
    config = config_from(args, FetchConfig)
    print(f"{config.hub} at {fetch(config)} is in {config.out}")
    return 0
