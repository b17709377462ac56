"""The variants of Table 6 from one start, on one GPU, in calls of at most ten minutes that take up one another.

    python benchmarks/rl_study.py --model nano/model --work runs/rl_study --out results/rl_study --minutes 9

Call it again until it prints `complete`. It writes problems (synthetic pairs; what is held out is in no training
file), optionally fine-tunes the model on both tasks first (`--sft-minutes`, for a start that knows infilling), asks the
start for all held-out problems, then for each variant trains (`dice rl`, resumable) and asks again.
`OUT/summary.json`: Exec with Wilson intervals before and after, the step's times, and reward curves by variant.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from dice.data.pair import Pair
from dice.data.synthetic import FLAWS
from dice.errors import DiceError
from dice.evaluation.score import wilson
from dice.jsonl import read_jsonl, write_jsonl
from dice.kernels.api import Problem, Verdict
from dice.training.history import read_history
from dice.training.rl_history import RlRow

ROOT = Path(__file__).resolve().parents[1]
INFILLING, END_TO_END = "infilling", "end_to_end"
VARIANTS = {
    "baseline": [(END_TO_END, "uniform")],
    "scheduling": [(END_TO_END, "paper")],
    "infilling": [(INFILLING, "uniform"), (END_TO_END, "uniform")],
    "both": [(INFILLING, "paper"), (END_TO_END, "paper")],
}
WRONG_ONLY = {name: 0 for name, (_, expected) in FLAWS.items() if expected.kind != "wrong"}
"""Weights of the flaws in what the start is fine-tuned on: its mistakes are wrong kernels, which infilling can mend."""
ASK_S = 75.0
"""What asking and judging the held-out problems takes, about."""
STARTING_S = 25.0
"""What loading a model and starting the verifier take before the first step."""


class OutOfTime(Exception):
    """The rest is for the next call."""


class Study:
    """One folder of work; every part that is done is not done again."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.work, self.out = args, Path(args.work).resolve(), Path(args.out).resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.out.mkdir(parents=True, exist_ok=True)
        self.end = STARTED + 60 * args.minutes
        self.log = self.work / "log.txt"

    def left_s(self) -> float:
        """Seconds of this call that are left."""
        return self.end - time.monotonic()

    def dice(self, *words: object) -> None:
        """Run a stage. Raises OutOfTime when it does not end in time, DiceError when it fails; verdicts with host errors
        are counted in the summary."""
        with self.log.open("a") as log:
            log.write(f"\n$ dice {' '.join(map(str, words))}\n")
            log.flush()
            command = [sys.executable, "-m", "dice.cli", *map(str, words)]
            try:
                done = subprocess.run(command, stdout=log, stderr=log, timeout=max(1.0, self.left_s()), cwd=ROOT)
            except subprocess.TimeoutExpired as error:
                raise OutOfTime from error
        if done.returncode not in ((0, 3) if words[0] == "verify" else (0,)):
            raise DiceError(f"dice {words[0]} failed:\n{self.log.read_text(errors='replace')[-3000:]}")

    def problems(self) -> None:
        """problems.jsonl to learn from, heldout.jsonl to be asked: other seeds, no program in both."""
        if (self.work / "heldout.prompts.jsonl").exists():
            return
        config = ROOT / "experiments" / "base" / f"{self.args.scale}-corpus.yaml"
        n, asked = self.args.problems, self.args.heldout
        flaws = json.dumps(WRONG_ONLY | self.args.sft_flaws)
        for name, seed, count in (("problems", 501, n), ("heldout", 77, 2 * asked), ("sft", 502, self.args.sft_pairs)):
            raw = self.work / f"{name}.raw.jsonl"
            flawed = self.args.sft_flawed_share if name == "sft" else 0
            self.dice(
                "synth", "--config", config, "--seed", seed, "--n", count, "--flawed-share", flawed,
                "--shapes", self.args.shapes, "--out", raw, "--quiet", "--set", f"generator.flaw_weights={flaws}",
            )  # fmt: skip
        self.dice("infill", "--pairs", self.work / "problems.raw.jsonl", "--out", self.work / "problems.jsonl")
        self.dice("infill", "--pairs", self.work / "sft.raw.jsonl", "--out", self.work / "sft.jsonl")
        seen = {
            p.pytorch_code for name in ("problems", "sft") for p in read_jsonl(self.work / f"{name}.raw.jsonl", Pair)
        }
        fresh = [p for p in read_jsonl(self.work / "heldout.raw.jsonl", Pair) if p.pytorch_code not in seen][:asked]
        rows = [
            Problem(id=f"heldout/{k}", level=p.level or 1, number=k, name=p.id, code=p.pytorch_code, version="heldout")
            for k, p in enumerate(fresh, 1)
        ]
        write_jsonl(self.work / "heldout.jsonl", rows)
        place = self.work / "heldout"
        self.dice("prompts", "--tasks", f"{place}.jsonl", "--style", "compact", "--out", f"{place}.prompts.jsonl")

    def start(self) -> Path:
        """The model that every variant starts from."""
        if not self.args.sft_minutes:
            return Path(self.args.model).resolve()
        model = self.work / "start" / "model"
        if not model.exists():
            self.dice(
                "sft", "--pairs", self.work / "sft.jsonl", "--model", self.args.model, "--out", self.work / "start",
                "--set", "prompt={style: compact}", "--set", "task=both", "--set", f"window={self.args.window}",
                "--set", "packs_per_step=1", "--set", "noise_per=block", "--set", "epsilon=0.1", "--set", "max_steps=100000",
                "--set", f"max_minutes={self.args.sft_minutes}", "--set", "optimizer.learning_rate=3.0e-4",
                "--set", "schedule=linear", "--set", "tensorboard=false",
                "--set", "save_every=1000000", "--set", f"device={self.args.device}",
            )  # fmt: skip
        return model

    def ask(self, name: str, model: Path) -> None:
        """One answer of `model` to each held-out problem, and the verdicts."""
        verdicts = self.work / f"{name}.verdicts.jsonl"
        if verdicts.exists():
            return
        if self.left_s() < ASK_S:
            raise OutOfTime
        generations = self.work / f"{name}.generations.jsonl"
        self.dice(
            "generate", "--model", model, "--prompts", self.work / "heldout.prompts.jsonl", "--out", generations,
            "--max-new-tokens", self.args.max_new_tokens, "--max-batch", 256, "--device", self.args.device,
            "--set", f"engine={self.args.engine}",
            "--set", f"block_diffusion.sampling.temperature={self.args.temperature}",
        )  # fmt: skip
        self.dice(
            "verify", "--candidates", generations, "--problems", self.work / "heldout.jsonl", "--out", verdicts,
            "--backend", self.args.backend, "--no-timing", "--quiet",
        )  # fmt: skip

    def config(self, name: str, model: Path) -> Path:
        """The variant's configuration: the phases are all that differs."""
        args = self.args
        steps = {INFILLING: args.infilling_steps, END_TO_END: args.steps}
        values = {
            "model": str(model),
            "out": str(self.work / "rl" / name),
            "phases": [
                {"task": task, "order": order, "steps": steps[task], "problems": [str(self.work / "problems.jsonl")]}
                for task, order in VARIANTS[name]
            ],
            "prompt": {"style": "compact"},
            "rollout": {
                "problems_per_step": args.problems_per_step,
                "samples": args.samples,
                "max_new_tokens": args.max_new_tokens,
                "max_batch": 256,
                "engine": args.engine,
            },
            "reward": {"backend": args.reward_backend, "machine": {"jobs": args.jobs}},
            # small models drift with few answers a step: the KL holds them at the start
            "objective": {
                "updates_per_step": args.updates,
                "micro_batch_rows": 65536 if args.device == "cuda" else 8192,
                "kl_reference": "start_model",
                "beta": args.beta,
            },
            "optimizer": {"learning_rate": args.learning_rate},
            # on a GPU every update has other lengths: FlexAttention and torch.compile would start anew
            "attention": "batched" if args.device == "cuda" else "auto",
            "compile": False,
            "device": args.device,
            "save_every": 5,
            "keep_checkpoints": 1,
        }
        path = self.work / f"{name}.yaml"
        path.write_text(json.dumps(values, indent=2))
        return path

    def train(self, name: str, model: Path) -> None:
        """Steps as far as the time goes."""
        if (self.work / "rl" / name / "model.manifest.json").exists():
            return
        if self.left_s() < STARTING_S + ASK_S + 60:
            raise OutOfTime
        minutes = (self.left_s() - STARTING_S - ASK_S) / 60
        self.dice("rl", "--config", self.config(name, model), "--max-minutes", f"{minutes:.2f}")
        if not (self.work / "rl" / name / "model.manifest.json").exists():
            paused = self.work / "rl" / name / "paused"
            steps = sum(1 for _ in read_history(paused.parent, RlRow))
            self.ask(f"{name}.after-{steps}-steps", paused)
            raise OutOfTime

    def everything(self) -> bool:
        """True: all is done."""
        try:
            self.problems()
            model = self.start()
            self.ask("start", model)
            for name in self.args.variants:
                self.train(name, model)
                self.ask(name, self.work / "rl" / name / "model")
        except OutOfTime:
            return False
        return True

    def summary(self, complete: bool) -> dict[str, Any]:
        """What there is so far, also written to the folder that travels."""
        found: dict[str, Any] = {"complete": complete, "exec": {}, "rl": {}}
        for path in sorted(self.work.glob("*.verdicts.jsonl")):
            name = path.name.removesuffix(".verdicts.jsonl")
            statuses = [row.status for row in read_jsonl(path, Verdict)]
            n = len(statuses) - statuses.count("host_error")
            low, high = wilson(statuses.count("correct"), n)
            found["exec"][name] = {"n": n, "exec": statuses.count("correct") / max(1, n), "interval": [low, high]}
            found["exec"][name]["statuses"] = {status: statuses.count(status) for status in set(statuses)}
        for name in self.args.variants:
            run = self.work / "rl" / name
            if (run / "history.jsonl").exists():
                found["rl"][name] = curve(list(read_history(run, RlRow)))
                shutil.copy(run / "history.jsonl", self.out / f"{name}.history.jsonl")
        (self.out / "summary.json").write_text(json.dumps(found, indent=2))
        if self.log.exists():
            (self.out / "log-tail.txt").write_text(self.log.read_text(errors="replace")[-20000:])
        return found


def curve(rows: list[RlRow]) -> dict[str, Any]:
    """A run in numbers: reward by fifths of each phase, time by part, the share of waiting."""
    report: dict[str, Any] = {"steps": len(rows)}
    for phase in dict.fromkeys(row.phase for row in rows):
        mine = [row for row in rows if row.phase == phase]
        size = max(1, len(mine) // 5)
        parts = [mine[at : at + size] for at in range(0, len(mine), size)]
        report[phase] = {
            "steps": len(mine),
            "reward": [round(sum(r.reward or 0 for r in part) / len(part), 4) for part in parts],
            "signal_share": round(sum(r.signal_share for r in mine) / len(mine), 3),
            "deception_rate": round(sum(r.deception_rate for r in mine) / len(mine), 4),
            "left_out": sum(r.left_out for r in mine),
            "entropy": [round(r.entropy or 0, 4) for r in (mine[0], mine[-1])],
            "kl": round(max(r.kl or 0 for r in mine), 5),
            "mismatch": round(max(r.mismatch or 0 for r in mine), 5),
            "response_tokens": [round(r.response_tokens) for r in (mine[0], mine[-1])],
        }
        for name in ("seconds", "rollout_s", "wait_s", "update_s"):
            report[phase][name] = round(sum(getattr(r, name) for r in mine) / len(mine), 2)
        report[phase]["wait_share"] = round(sum(r.wait_s for r in mine) / sum(r.seconds for r in mine), 3)
    return report


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="checkpoint folder of the SFT start")
    parser.add_argument("--work", required=True, help="folder that stays between calls")
    parser.add_argument("--out", default=os.environ.get("OUT", "results/rl_study"), help="folder of the summary")
    parser.add_argument("--minutes", type=float, default=9.0, help="length of this call")
    parser.add_argument(
        "--variants", nargs="*", default=list(VARIANTS), help=f"of {', '.join(VARIANTS)}; none: only the start is made"
    )
    parser.add_argument("--scale", choices=["nano", "tiny"], default="nano")
    parser.add_argument("--problems", type=int, default=1500)
    parser.add_argument("--heldout", type=int, default=256)
    parser.add_argument(
        "--sft-minutes", type=float, default=0.0, help="fine-tune on both tasks first; 0: start as given"
    )
    parser.add_argument("--sft-pairs", type=int, default=20000)
    parser.add_argument(
        "--sft-flawed-share",
        type=float,
        default=0.5,
        help="of the pairs of `--sft-minutes`: a start right part of the time",
    )
    parser.add_argument(
        "--sft-flaws", type=json.loads, default={}, help='weights of flaws, as JSON: {"off_by_one": 40}; others have 1'
    )
    parser.add_argument("--window", type=int, default=49152)
    parser.add_argument("--infilling-steps", type=int, default=20)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--problems-per-step", type=int, default=32)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--updates", type=int, default=1)
    parser.add_argument("--beta", type=float, default=0.1, help="weight of the KL from the start model")
    parser.add_argument("--learning-rate", type=float, default=1e-5)
    parser.add_argument("--max-new-tokens", type=int, default=800)
    parser.add_argument(
        "--temperature",
        type=float,
        default=0.0,
        help="of the answers to held-out problems; 1: as in training, 0: greedy",
    )
    parser.add_argument("--engine", choices=["auto", "plain", "fast"], default="auto", help="of decoding")
    parser.add_argument("--jobs", type=int, help="candidates of a step that run at one time; default: the verifier's")
    parser.add_argument("--backend", choices=["cuda", "cpu"], default="cuda", help="that judges the held-out answers")
    parser.add_argument(
        "--reward-backend",
        choices=["cuda", "cpu"],
        default="cpu",
        help="that earns the reward; a GPU's driver starts about four processes a second, sixteen cores judge more",
    )
    parser.add_argument(
        "--shapes", choices=["small", "large"], default="small", help="of the problems; a CPU needs small ones"
    )
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    args = parser.parse_args()
    unknown = set(args.variants) - VARIANTS.keys()
    if unknown:
        parser.error(f"no variant {', '.join(sorted(unknown))}; there are {', '.join(VARIANTS)}")
    return args


def main() -> None:
    """One call."""
    study = Study(arguments())
    complete = False
    try:
        complete = study.everything()
    finally:
        print(json.dumps(study.summary(complete), indent=1))
    print("complete" if complete else "not complete: call again")


STARTED = time.monotonic()

if __name__ == "__main__":
    main()
