"""Small models from nothing on one GPU: corpora, tokenizers, training, answers to unseen problems, verdicts.

    python benchmarks/from_scratch.py --out results/from_scratch --seconds 540

Trains the tiny scale's base model and the nano model (experiments/base/*.yaml) side by side for the same time, then
asks each for kernels: problems of the synthetic families with unseen shapes and names, those of held-out families, and
the mini benchmark. The tiny model's are executed on the CPU, the nano model's on the GPU. Every part writes what it has
when it ends, and none depends on the other model's: a part that fails is named in `summary.json` and the rest goes on.

The folder gets `summary.json` (Exec with Wilson intervals), `tiny.tar.gz` and `nano.tar` in parts of 15 MiB
(`cat nano.tar.* | tar x`), and `evidence.tar.gz` (prompts, generations, verdicts, histories, logs, manifests).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dice.data.pair import Pair
from dice.errors import DiceError
from dice.evaluation.score import wilson
from dice.jsonl import Journal, read_jsonl, read_objects, write_jsonl
from dice.kernels.api import Problem, load_mini

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "experiments" / "base"
PART_BYTES = 15 << 20
LOADING_S = 75
"""What reading, checking and tokenizing a corpus takes before the first step, about."""


@dataclass(frozen=True)
class Model:
    """One model and how it is asked."""

    name: str
    pairs: int
    """Pairs of its corpus."""
    vocab_size: int
    backend: str
    size: str
    """Size of the mini benchmark's problems."""
    unseen: int
    """Problems of the training families, of another seed."""
    heldout: int
    """Problems of families that training never draws."""
    mini_samples: int
    max_new_tokens: int
    jobs: int
    share: float = 1.0
    """Share of the training time."""


MODELS = (
    Model("tiny", 120_000, 1024, "cpu", "cpu", unseen=96, heldout=32, mini_samples=2, max_new_tokens=640, jobs=8),
    Model("nano", 120_000, 2048, "cuda", "gpu", unseen=96, heldout=16, mini_samples=1, max_new_tokens=800, jobs=6),
)


class Run:
    """One model from corpus to verdicts, in a folder of its own."""

    def __init__(self, model: Model, work: Path, end: float, evaluate_s: float, settings: list[str]) -> None:
        self.model, self.folder, self.settings = model, work / model.name, settings
        self.folder.mkdir(parents=True)
        self.end = end
        self.train_end = end - evaluate_s
        self.log = self.folder / "log.txt"
        self.parts: dict[str, dict[str, Any]] = {}
        self.shards = [self.folder / f"pairs-{number}.jsonl" for number in range(8)]

    def say(self, text: str) -> None:
        """One line, with the seconds since the start."""
        print(f"[{time.monotonic() - STARTED:5.0f} s] {self.model.name}: {text}", flush=True)

    def dice(self, *words: object, limit: float | None = None, **environment: str) -> None:
        """Run a stage; raises CalledProcessError or TimeoutExpired."""
        command = [sys.executable, "-m", "dice.cli", *map(str, words)]
        with self.log.open("a") as log:
            log.write(f"\n$ dice {' '.join(map(str, words))}\n")
            log.flush()
            left = max(5.0, (limit or self.end) - time.monotonic())
            subprocess.run(
                command, stdout=log, stderr=log, check=True, timeout=left, cwd=ROOT, env=os.environ | environment
            )

    def part(self, name: str, work: Callable[[], Any]) -> bool:
        """Do one part, note how it went; a failure is told and does not stop the others."""
        began = time.monotonic()
        try:
            result, error = work(), None
        except (subprocess.SubprocessError, DiceError, OSError, ValueError, LookupError, RuntimeError) as failure:
            result, error = None, f"{type(failure).__name__}: {failure}"[:600]
            self.say(f"{name} FAILED: {error}")
            tail = self.log.read_text(errors="replace")[-1500:] if self.log.exists() else ""
            print(tail, flush=True)
        self.parts[name] = {"seconds": round(time.monotonic() - began, 1), "result": result, "error": error}
        (self.folder / "parts.json").write_text(json.dumps(self.parts, indent=2))
        if error is None:
            self.say(f"{name}: {json.dumps(result)}")
        return error is None

    # parts --------------------------------------------------------------------------------------------------------
    def corpus(self) -> dict[str, Any]:
        """Pairs in shards by as many processes, a tokenizer from the first, and the problems to be asked."""
        each = self.model.pairs // len(self.shards)
        config = RECIPES / f"{self.model.name}-corpus.yaml"
        jobs = [
            threading.Thread(target=self._synth, args=(path, config, each, each * number))
            for number, path in enumerate(self.shards)
        ]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        missing = [path.name for path in self.shards if not path.exists()]
        if missing:
            raise RuntimeError(f"shards {missing} were not written")
        self.dice(
            "tokenizer", "--pairs", self.shards[0], "--rows", 4000, "--vocab-size", self.model.vocab_size,
            "--out", self.folder / "tokenizer",
        )  # fmt: skip
        return {"pairs": each * len(self.shards)}

    def known(self) -> dict[str, Any]:
        """Verdicts on the generator's own answers: the most that can be reached, and a warm build cache."""
        pairs = list(read_jsonl(self.folder / "unseen-pairs.jsonl", Pair))[:16]
        rows = [
            {"problem_id": f"known/{k}", "sample": 0, "code": pair.cuda_code, "problem_code": pair.pytorch_code}
            for k, pair in enumerate(pairs)
        ]
        write_jsonl(self.folder / "known.generations.jsonl", rows)
        return self.verdicts("known", self.train_end)

    def _synth(self, path: Path, config: Path, n: int, start: int) -> None:
        self.dice("synth", "--config", config, "--n", n, "--start", start, "--out", path, "--quiet")

    def problems(self) -> dict[str, Any]:
        """What is asked: `unseen`, `heldout` and `mini` as problems.jsonl each; nothing that the corpus holds."""
        config = RECIPES / f"{self.model.name}-corpus.yaml"
        for name, n in (("unseen", self.model.unseen), ("heldout", self.model.heldout)):
            raw = self.folder / f"{name}-pairs.jsonl"
            words = ["synth", "--config", config, "--seed", 77, "--n", 2 * n, "--out", raw, "--quiet"]
            words += ["--flawed-share", 0] + (["--heldout"] if name == "heldout" else [])
            self.dice(*words)
        seen = {row["pytorch_code"] for path in self.shards for _, row in read_objects(path)}
        counts = {}
        for name, n in (("unseen", self.model.unseen), ("heldout", self.model.heldout)):
            fresh = [p for p in read_jsonl(self.folder / f"{name}-pairs.jsonl", Pair) if p.pytorch_code not in seen]
            rows = [
                Problem(id=f"{name}/{k}", level=p.level or 1, number=k, name=p.id, code=p.pytorch_code, version=name)
                for k, p in enumerate(fresh[:n], 1)
            ]
            write_jsonl(self.folder / f"{name}.jsonl", rows)
            counts[name] = len(rows)
        mini = load_mini("cpu" if self.model.size == "cpu" else "gpu")
        mini = [p for p in mini if p.level <= 2] if self.model.name == "tiny" else mini
        write_jsonl(self.folder / "mini.jsonl", mini)
        return counts | {"mini": len(mini)}

    def train(self) -> dict[str, Any]:
        """From scratch until the time is over; once more without compiled operations if that fails early."""
        minutes = (self.train_end - time.monotonic() - LOADING_S) * self.model.share / 60
        words = ["sft", "--config", RECIPES / f"{self.model.name}.yaml", "--pairs", *self.shards]
        words += ["--tokenizer", self.folder / "tokenizer", "--out", self.folder / "run"]
        words += [word for setting in self.settings for word in ("--set", setting)]
        words += ["--set", "tensorboard=false", "--set", f"max_minutes={minutes:.3f}"]
        fallback = None
        try:
            self.dice(*words, limit=self.train_end + 60)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
            fallback = f"compile: {failure}"[:200]
            self.say("training failed, again without compiled operations")
            print(self.log.read_text(errors="replace")[-3000:], flush=True)
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            minutes = (self.train_end - time.monotonic() - LOADING_S) / 60
            words[-1] = f"max_minutes={max(0.5, minutes):.3f}"
            self.dice(*words, "--set", "compile=false", limit=self.train_end + 90)
        rows = [row for _, row in read_objects(self.folder / "run" / "history.jsonl")]
        late = rows[-max(1, len(rows) // 20) :]
        return {
            "steps": len(rows),
            "tokens": sum(row["tokens"] for row in rows),
            "epochs": rows[-1]["epoch"],
            "loss_first": rows[0]["loss"],
            "loss_last": round(sum(row["loss"] for row in late) / len(late), 4),
            "seconds_per_step": sorted(row["seconds"] for row in rows)[len(rows) // 2],
            "tokens_per_s": sorted(row["tokens_per_s"] for row in rows)[len(rows) // 2],
            "mfu": sorted(row["mfu"] or 0 for row in rows)[len(rows) // 2],
            "peak_memory_gib": rows[-1]["peak_memory_gib"],
            "fallback": fallback,
        }

    def answers(self, suite: str, samples: int, temperature: float) -> dict[str, Any]:
        """Generate, then verify; Exec and statuses."""
        place = self.folder / suite
        prompts, generations = place.with_suffix(".prompts.jsonl"), place.with_suffix(".generations.jsonl")
        self.dice("prompts", "--tasks", place.with_suffix(".jsonl"), "--style", "compact", "--out", prompts)
        self.dice(
            "generate", "--model", self.folder / "run" / "model", "--prompts", prompts, "--out", generations,
            "--samples", samples, "--max-new-tokens", self.model.max_new_tokens, "--max-batch", 256,
            "--set", "engine=plain", "--set", f"block_diffusion.sampling.temperature={temperature}",
        )  # fmt: skip
        return {"generation": self._generation(generations)}

    def _generation(self, path: Path) -> dict[str, Any]:
        rows = [row for _, row in read_objects(path)]
        tokens, forwards = (sum(row[name] for row in rows) for name in ("n_tokens", "n_forwards"))
        return {
            "answers": len(rows),
            "without_code": sum(row["code"] is None for row in rows),
            "cut_off": sum(row["finish_reason"] == "length" for row in rows),
            "mean_tokens": round(tokens / len(rows), 1),
            "tokens_per_forward": round(tokens / forwards, 3),
        }

    def verdicts(self, suite: str, limit: float | None = None) -> dict[str, Any]:
        """Exec of a suite's answers with its Wilson interval; what was judged before the time was over counts."""
        place = self.folder / suite
        out = place.with_suffix(".verdicts.jsonl")
        try:
            problems = place.with_suffix(".jsonl")
            self.dice(
                "verify", *(("--problems", problems) if problems.exists() else ()), "--backend", self.model.backend,
                "--candidates", place.with_suffix(".generations.jsonl"), "--jobs", self.model.jobs, "--out", out,
                "--quiet", limit=limit,
            )  # fmt: skip
            complete = True
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
            complete = isinstance(failure, subprocess.CalledProcessError) and failure.returncode == 3
        partial = out.with_name(out.name + ".partial")
        found = out
        if not out.exists() and partial.exists():
            Journal(partial).close()  # cuts a torn last line
            found = partial
        rows = [row for _, row in read_objects(found)] if found.exists() else []
        groups: dict[str, Counter[str]] = defaultdict(Counter)
        for row in rows:
            if row.get("status"):
                groups[row["problem_id"].partition("/")[0]][row["status"]] += 1
        report: dict[str, Any] = {"complete": complete}
        for name, counts in sorted(groups.items()):
            n = sum(counts.values()) - counts["host_error"]
            low, high = wilson(counts["correct"], n) if n else (0.0, 1.0)
            report[name] = {
                "exec_percent": round(100 * counts["correct"] / n, 1) if n else None,
                "interval": [round(100 * low, 1), round(100 * high, 1)],
                "n": n,
                "statuses": dict(counts),
            }
        return report

    def pack(self, out: Path) -> dict[str, Any]:
        """The model in files that travel."""
        model = self.folder / "run" / "model"
        name = f"{self.model.name}.tar" + (".gz" if self.model.name == "tiny" else "")
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            packed = Path(scratch) / name
            with tarfile.open(packed, "w:gz" if name.endswith("gz") else "w") as tar:
                tar.add(model, arcname=f"{self.model.name}/model")
                for extra in ("run/model.manifest.json", "run/history.jsonl"):
                    if (self.folder / extra).exists() and self.model.name == "tiny":
                        tar.add(self.folder / extra, arcname=f"{self.model.name}/{Path(extra).name}")
            data = packed.read_bytes()
        parts = [data[at : at + PART_BYTES] for at in range(0, len(data), PART_BYTES)]
        for number, part in enumerate(parts):
            target = out / (name if len(parts) == 1 else f"{name}.{number}")
            target.write_bytes(part)
        return {"bytes": len(data), "parts": len(parts)}

    def everything(self, out: Path) -> None:
        """All parts in order; evaluation needs a model, the rest goes on whatever fails."""
        if not self.part("corpus", self.corpus):
            return

        def ask() -> None:
            if self.part("problems", self.problems):
                self.part("known", self.known)

        asked = threading.Thread(target=ask)
        asked.start()
        if not self.part("train", self.train):
            return
        self.part("pack", lambda: self.pack(out))
        asked.join()
        for suite, samples, temperature in (
            ("unseen", 1, 0.0),
            ("mini", self.model.mini_samples, 0.7 if self.model.mini_samples > 1 else 0.0),
            ("heldout", 1, 0.0),
        ):
            if self.part(f"{suite}: generate", lambda s=suite, n=samples, t=temperature: self.answers(s, n, t)):
                self.part(f"{suite}: verify", lambda s=suite: self.verdicts(s))


def collect(runs: list[Run], out: Path) -> None:
    """summary.json and evidence.tar.gz of what there is so far."""
    summary = {run.model.name: run.parts for run in runs}
    (out / "summary.json").write_text(json.dumps(summary, indent=2))
    with tarfile.open(out / "evidence.tar.gz.part", "w:gz", compresslevel=3) as tar:
        for run in runs:
            for path in sorted(run.folder.rglob("*")):
                text = path.suffix in (".json", ".jsonl", ".txt", ".partial")
                small = text and path.is_file() and path.stat().st_size < 8 << 20
                if small and not path.name.startswith("pairs-") and "checkpoints" not in path.parts:
                    with contextlib.suppress(OSError):  # a temporary file that is gone, one that is being written
                        data = path.read_bytes()
                        entry = tarfile.TarInfo(str(path.relative_to(run.folder.parent)))
                        entry.size = len(data)
                        tar.addfile(entry, io.BytesIO(data))
    os.replace(out / "evidence.tar.gz.part", out / "evidence.tar.gz")


def main() -> None:
    """Both models at the same time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="scratch folder (default: in memory where there is /dev/shm)")
    parser.add_argument("--seconds", type=float, default=540, help="for everything")
    parser.add_argument("--evaluate", type=float, default=190, help="seconds of these for generation and verdicts")
    parser.add_argument("--models", nargs="+", default=["tiny", "nano"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a field of dice sft")
    parser.add_argument("--small", type=int, default=1, help="divide corpora and questions by this, to try it out")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    memory = Path("/dev/shm")
    place = args.work or Path(tempfile.mkdtemp(prefix="from-scratch-", dir=memory if memory.is_dir() else None))
    end = STARTED + args.seconds
    runs = []
    for model in MODELS:
        if model.name in args.models:
            changes = {name: max(4, getattr(model, name) // args.small) for name in ("pairs", "unseen", "heldout")}
            runs.append(Run(replace(model, **changes), place, end - 15, args.evaluate, args.set))
    threads = [threading.Thread(target=run.everything, args=(args.out,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(20)
            collect(runs, args.out)
    collect(runs, args.out)
    print((args.out / "summary.json").read_text())
    if args.work is None:
        shutil.rmtree(place, ignore_errors=True)


STARTED = time.monotonic()

if __name__ == "__main__":
    main()
