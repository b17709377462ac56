"""What the manifest beside a result says."""

from __future__ import annotations

import dice.manifest
from dice.manifest import Gpu, Stopwatch, visible_gpus, write_manifest


def test_changes_that_git_cannot_tell_are_not_called_none(tmp_path, monkeypatch):
    """`git status` of a large tree on a slow disk takes longer than its limit."""

    def output_of(*command: str) -> str | None:
        return "0" * 40 if "rev-parse" in command else None

    monkeypatch.setattr(dice.manifest, "_output_of", output_of)
    made = write_manifest(tmp_path / "x.jsonl", stage="test", spec={}, watch=Stopwatch())
    assert made.git_commit == "0" * 40
    assert made.git_dirty is None


def test_a_gpu_that_does_not_tell_its_memory_has_none(monkeypatch):
    """One that shares the processor's memory: nvidia-smi says [N/A]."""
    lines = "GPU-1, NVIDIA GB10, 580.95, [N/A]\nGPU-2, NVIDIA H200, 580.95, 143771"
    monkeypatch.setattr(dice.manifest, "_output_of", lambda *command: lines)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_gpus() == [
        Gpu(name="NVIDIA GB10", driver="580.95", memory_mib=None),
        Gpu(name="NVIDIA H200", driver="580.95", memory_mib=143771),
    ]
