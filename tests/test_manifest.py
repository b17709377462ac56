"""What the manifest beside a result says."""

from __future__ import annotations

import dice.manifest
from dice.manifest import Stopwatch, write_manifest


def test_changes_that_git_cannot_tell_are_not_called_none(tmp_path, monkeypatch):
    """`git status` of a large tree on a slow disk takes longer than its limit."""

    def output_of(*command: str) -> str | None:
        return "0" * 40 if "rev-parse" in command else None

    monkeypatch.setattr(dice.manifest, "_output_of", output_of)
    made = write_manifest(tmp_path / "x.jsonl", stage="test", spec={}, watch=Stopwatch())
    assert made.git_commit == "0" * 40
    assert made.git_dirty is None
