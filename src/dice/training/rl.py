"""`dice rl`: BiC-RL (paper, section 4.2), block-diffusion policies whose reward is a verified kernel.

One process group for the whole run. A step: the scheduled problems; answers by dynamic block decoding with the
policy's own weights, each handed to the verifier while others are decoded; reward 0 or 1; z-scores within the answers
of a problem; TraceRL's loss over the recorded trajectories. Everything follows from the seed and the step, so a run
that is taken up at a checkpoint goes on along the curve of an unbroken one. Contract: docs/rl.md.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tqdm import tqdm

from dice.config import load_config, spec_hash, to_spec
from dice.data.schedule import Schedule
from dice.data.tokenizer import load_tokenizer, save_tokenizer
from dice.decoding.decoder import Decoder
from dice.errors import DiceError, HarnessError
from dice.jsonl import write_jsonl
from dice.manifest import Stopwatch, sha256_file, write_manifest
from dice.model.checkpoint import load_model, read_config, save_state, torch_dtype
from dice.model.transformer import Transformer, compiled_pointwise
from dice.training.checkpoints import Checkpoint, latest_checkpoint, save_checkpoint
from dice.training.engine import TrainingEngine, make_engine
from dice.training.history import History
from dice.training.rl_config import RESUMABLE_CHANGES, Phase, RlConfig
from dice.training.rl_data import PhaseData, load_phase
from dice.training.rl_history import AnswerRow, RlRow
from dice.training.rl_update import Updater, UpdateReport, compare, learning_rate, trajectory_of
from dice.training.rollout import Answer, Asked, Rollout, Verifier, reward_of, roll_out
from dice.training.trajectory import PolicyObjective


class RlRun:
    """One process of a run."""

    def __init__(self, config: RlConfig) -> None:
        check(config)
        self.config = config
        self.rank, self.world = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        self.device = _device(config)
        self.dtype = torch_dtype(config.dtype or ("bfloat16" if self.device.type == "cuda" else "float32"))
        self.geometry = read_config(config.model)
        self.block_size = config.rollout.decoding.block_size
        if self.geometry.model_type != "sdar":
            raise DiceError(f"{config.model}: BiC-RL needs a block-diffusion model, this one is autoregressive.")
        if self.geometry.block_size not in (None, self.block_size):
            raise DiceError(
                f"{config.model}: the model was trained with blocks of {self.geometry.block_size}, and "
                f"rollout.decoding.block_size is {self.block_size}; make them equal."
            )
        self.tokenizer = load_tokenizer(config.tokenizer or config.model, family="sdar")
        if self.tokenizer.ids.mask is None:
            raise DiceError(f"{config.model}: the tokenizer has no mask token, which block diffusion needs.")
        self.mask_id = self.tokenizer.ids.mask
        released = config.released_behaviour
        whole = released.whole_file_infilling
        prompt = dataclasses.replace(config.prompt, answer="file") if whole else config.prompt
        room = self.geometry.max_position_embeddings - config.rollout.max_new_tokens - self.block_size
        self.phases: list[PhaseData] = [
            load_phase(
                phase,
                self.tokenizer,
                prompt,
                max_prompt_tokens=config.rollout.max_prompt_tokens,
                room=room,
                whole_file=whole,
            )
            for phase in config.phases
        ]
        self.schedules = [
            Schedule(
                [problem.level for problem in data.problems],
                phase.order,
                steps=phase.steps,
                per_step=config.rollout.problems_per_step,
                seed=config.seed,
            )
            for phase, data in zip(config.phases, self.phases, strict=True)
        ]
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        model = self._load(training=True)
        objective = PolicyObjective(
            model,
            self.mask_id,
            clip=config.objective.clip,
            beta=config.objective.beta,
            chunk=config.head_chunk,
            attention=config.attention,
        )
        self.engine: TrainingEngine = make_engine(config.engine, objective, config.optimizer, micro_batches=None)
        # a sharding engine owns its tensors; then answers come from a copy that is kept equal in memory
        self.sampler = model if config.engine == "local" else self._load(training=False)
        reference = self._load(training=False) if config.objective.kl_reference == "start_model" else None
        self.updater = Updater(
            config, self.engine, objective, step_start=self.sampler, reference=reference, block_size=self.block_size
        )
        self._decoder: Decoder | None = None
        self.identity = self._identity()

    def _load(self, *, training: bool) -> Transformer:
        config = self.config
        model = load_model(config.model, device=self.device, dtype=self.dtype)
        if not training:
            return model.eval().requires_grad_(False)
        recompute = config.activation_checkpointing
        model.checkpointing = self.geometry.hidden_size >= 1024 if recompute is None else recompute
        if config.compile and self.device.type == "cuda":
            model.use(compiled_pointwise())
        return model.train()

    def _identity(self) -> str:
        """Hash of everything that the curve depends on; computed once, the same in all processes."""
        found = [""]
        if self.rank == 0:
            spec = {name: value for name, value in to_spec(self.config).items() if name not in RESUMABLE_CHANGES}
            spec["reward"].pop("machine")
            weights = [sha256_file(path) for path in sorted(Path(self.config.model).glob("*.safetensors"))]
            data = [sha256_file(path) for phase in self.config.phases for path in phase.problems]
            found = [spec_hash(spec | {"weights": weights, "data": data})]
        if self.world > 1:
            dist.broadcast_object_list(found)
        return found[0]

    # one step ---------------------------------------------------------------------------------------------------
    def place(self, step: int) -> tuple[int, Phase, int]:
        """(number of the phase, phase, step within it) of `step` (from 1)."""
        for number, phase in enumerate(self.config.phases):
            if step <= phase.steps:
                return number, phase, step
            step -= phase.steps
        raise ValueError("a step beyond the last phase")

    def decoder(self) -> Decoder:
        """Cache and graphs over the live weights; kept from step to step unless rollout.release."""
        if self._decoder is None:
            rollout = self.config.rollout
            fast = rollout.engine == "fast" or (
                rollout.engine == "auto" and self.device.type == "cuda" and self.dtype == torch.bfloat16
            )
            longest = max(len(problem.prompt) for data in self.phases for problem in data.problems)
            mine = -(-rollout.problems_per_step // self.world) * rollout.samples
            self._decoder = Decoder(
                self.sampler,
                rollout.decoding,
                mask_id=self.mask_id,
                stop_ids=self.tokenizer.ids.ends,
                max_batch=min(rollout.max_batch, mine),
                max_length=longest + rollout.max_new_tokens,
                engine="fast" if fast else "plain",
            )
        return self._decoder

    def asked(self, step: int) -> list[Asked]:
        """What this process has to answer in `step`."""
        number, _, inside = self.place(step)
        items = self.schedules[number].items(inside)
        return [
            Asked(self.phases[number].problems[item], group, sample)
            for group, item in enumerate(items)
            if group % self.world == self.rank
            for sample in range(self.config.rollout.samples)
        ]

    def step(self, step: int, verifier: Verifier, bar: tqdm | None = None) -> RlRow:
        """Answers, rewards, updates."""
        config = self.config
        began = time.perf_counter()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        asked = self.asked(step)
        drawn = 0

        def on_answer(answer: Answer) -> None:
            nonlocal drawn
            drawn += 1
            if bar is not None and drawn % 16 == 0:
                bar.set_postfix_str(f"answer {drawn} of {len(asked)}")

        rollout = roll_out(
            self.decoder(),
            verifier,
            asked,
            step=step,
            seed=config.seed,
            new_tokens=config.rollout.max_new_tokens,
            to_text=self.tokenizer.decode,
            on_answer=on_answer,
        )
        if config.rollout.release:
            self._decoder = None
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
        for answer in rollout.answers:
            if answer.candidate.code is None:
                answer.reward = 0.0
            else:
                answer.reward = reward_of(
                    answer.verdict,
                    config.reward,
                    host_error_earns_zero=config.released_behaviour.host_error_earns_zero,
                )
        if config.save_rollouts:
            path = Path(config.out) / "rollouts" / f"step-{step:06d}.{self.rank}.jsonl"
            write_jsonl(path, [_answer_row(step, answer) for answer in rollout.answers])
        answers = self._all(rollout.answers)
        groups: list[list[Answer]] = [[] for _ in range(config.rollout.problems_per_step)]
        for answer in answers:
            groups[answer.asked.group].append(answer)
        compared = compare([[answer.reward for answer in group] for group in groups])
        trajectories = [
            trajectory_of(answer.completion, advantage, config.released_behaviour, self.tokenizer)
            for group, scores in zip(groups, compared.advantages, strict=True)
            for answer, advantage in zip(group, scores, strict=True)
            if advantage is not None
        ]
        before = time.perf_counter()
        report = self.updater.update(trajectories, step, lambda: None)
        if report.updates and self.sampler is not self.updater.objective.model:
            self.engine.copy_to(self.sampler)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        ended = time.perf_counter()
        return self._row(step, answers, compared.__dict__, rollout, report, ended - before, ended - began)

    def _all(self, mine: list[Answer]) -> list[Answer]:
        """The answers of all processes, in the order of their groups."""
        if self.world == 1:
            return mine
        found: list[list[Answer] | None] = [None] * self.world
        dist.all_gather_object(found, mine)
        together = [answer for part in found for answer in part or []]
        return sorted(together, key=lambda answer: (answer.asked.group, answer.asked.sample))

    def _row(
        self,
        step: int,
        answers: Sequence[Answer],
        groups: dict[str, Any],
        rollout: Rollout,
        report: UpdateReport,
        update_s: float,
        seconds: float,
    ) -> RlRow:
        number, phase, inside = self.place(step)
        schedule = self.schedules[number]
        levels = [schedule.levels[item] for item in schedule.items(inside)]
        known = [answer.reward for answer in answers if answer.reward is not None]
        codes = [(a.asked.problem.id, a.candidate.code) for a in answers if a.candidate.code is not None]
        found = Counter(
            name for a in answers if a.verdict is not None for name in {finding.name for finding in a.verdict.deception}
        )
        n = len(answers)
        tokens = sum(len(a.completion.ids) for a in answers)
        memory = torch.cuda.max_memory_allocated(self.device) / 2**30 if self.device.type == "cuda" else None
        return RlRow(
            step=step,
            phase=phase.name or phase.task,
            task=phase.task,
            step_in_phase=inside,
            epoch=round(schedule.epoch(inside), 4),
            level_mean=round(sum(levels) / len(levels), 4),
            problems=len(levels),
            samples=n,
            reward=sum(known) / len(known) if known else None,
            left_out=n - len(known),
            host_errors=int(self.engine.total(torch.tensor(float(rollout.host_errors), device=self.device))),
            groups_all_right=groups["all_right"],
            groups_all_wrong=groups["all_wrong"],
            groups_with_signal=groups["with_signal"],
            signal_share=groups["with_signal"] / len(levels),
            statuses=dict(Counter(answer.status for answer in answers).most_common()),
            no_code_share=1 - len(codes) / n,
            left_middle_share=sum(a.candidate.left_middle for a in answers) / n,
            deception_rate=sum(answer.deceptive for answer in answers) / n,
            findings=dict(found.most_common()),
            distinct_share=len(set(codes)) / max(1, len(codes)),
            response_tokens=tokens / n,
            cut_off_share=sum(a.completion.finish_reason == "length" for a in answers) / n,
            tokens_per_forward=tokens / max(1, sum(a.completion.n_forwards for a in answers)),
            learning_rate=learning_rate(self.config, 0, max(1, report.updates)),
            **dataclasses.asdict(report),
            seconds=seconds,
            rollout_s=rollout.rollout_s,
            verify_s=rollout.verify_s,
            wait_s=rollout.wait_s,
            update_s=update_s,
            wait_share=rollout.wait_s / seconds,
            peak_memory_gib=None if memory is None else round(memory, 2),
        )

    # the run ----------------------------------------------------------------------------------------------------
    def train(self) -> dict[str, Any]:
        """All steps that are left, from the newest checkpoint; returns the run's summary."""
        config = self.config
        watch, out = Stopwatch(), Path(config.out)
        start = self.resume(latest_or_refuse(out / "checkpoints", self.identity))
        history = History(out, RlRow, step=start, tensorboard=config.tensorboard) if self.rank == 0 else None
        done, last, slowest, began = start, None, 0.0, time.perf_counter()
        most = config.rollout.samples * -(-config.rollout.problems_per_step // self.world)
        local_world = int(os.environ.get("LOCAL_WORLD_SIZE", self.world))
        gpu = self.device.index if self.world > 1 and config.reward.backend == "cuda" else None
        with contextlib.ExitStack() as stack:
            bar = stack.enter_context(
                tqdm(total=config.steps, initial=start, desc="rl", unit="step", disable=self.rank != 0)
            )
            verifier = Verifier(config.reward, most_jobs=most, gpu=gpu, share=local_world)
            for step in range(start + 1, config.steps + 1):
                if self._out_of_time(time.perf_counter() - began + slowest):
                    break
                if verifier.pool is None:
                    stack.enter_context(verifier)
                try:
                    last = self.step(step, verifier, bar)
                    if history is not None:
                        history.append(last)
                except OSError as error:
                    raise HarnessError(
                        f"{out}: step {step} could not be written ({error.strerror}); {_kept(out)}"
                    ) from error
                done, slowest = step, max(slowest, last.seconds) if step > start + 1 else last.seconds
                bar.update()
                bar.set_postfix_str(progress_line(last))
                number, phase, inside = self.place(step)
                phase_ends = inside == phase.steps
                if phase_ends and number + 1 < len(config.phases):
                    self.save_model(out / "phases" / f"{number + 1}-{phase.name or phase.task}")
                if step % config.save_every == 0 or phase_ends:
                    self.save(step)
        if done > start and done % config.save_every and done != config.steps:
            self.save(done)
        if history is not None:
            history.close()
        summary = self.summary(done, start, last)
        if done == config.steps:
            self.save_model(out / "model")
            if self.rank == 0:
                data = [path for phase in config.phases for path in phase.problems]
                write_manifest(
                    out / "model",
                    stage="rl",
                    spec=to_spec(config),
                    watch=watch,
                    inputs=[*data, out / "history.jsonl"],
                    seeds=[config.seed],
                    extra=summary,
                )
        return summary

    def resume(self, checkpoint: Checkpoint | None) -> int:
        """Load it; returns the steps that are done. Raises DiceError for one that cannot be read."""
        if checkpoint is None:
            return 0
        try:
            self.engine.load(checkpoint.folder)
        except (OSError, RuntimeError, ValueError, KeyError, EOFError) as error:
            others = sorted(path.name for path in checkpoint.folder.parent.glob("step-*") if path != checkpoint.folder)
            rest = f"delete that folder to go on from {others[-1]}" if others else "delete it to start again"
            raise DiceError(
                f"{checkpoint.folder}: the checkpoint is damaged ({' '.join(str(error).split())[:160]}); {rest}."
            ) from error
        if self.sampler is not self.updater.objective.model:
            self.engine.copy_to(self.sampler)
        return checkpoint.step

    def save(self, step: int) -> None:
        """A checkpoint. Raises HarnessError when it cannot be written; earlier ones stay."""
        folder = Path(self.config.out) / "checkpoints"
        try:
            save_checkpoint(folder, self.engine, step, self.identity, keep=self.config.keep_checkpoints)
        except (OSError, RuntimeError) as error:
            for partial in folder.glob(".step-*.partial"):
                shutil.rmtree(partial, ignore_errors=True)
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).split("\n")[0]
            raise HarnessError(
                f"{folder}: the checkpoint of step {step} could not be written ({reason}); {_kept(folder.parent)}"
            ) from error

    def save_model(self, folder: Path) -> None:
        """The policy as a checkpoint folder with its tokenizer."""
        weights = self.engine.weights()
        if weights is None:
            return
        try:
            save_state(weights, self.geometry, folder, dtype=self.dtype)
            save_tokenizer(self.tokenizer, folder)
        except OSError as error:
            raise HarnessError(
                f"{folder}: the model could not be written ({error.strerror}); {_kept(Path(self.config.out))}"
            ) from error

    def _out_of_time(self, elapsed_s: float) -> bool:
        """Whether the next step would end after `max_minutes`; the same answer in all processes."""
        if self.config.max_minutes is None:
            return False
        late = torch.tensor(float(elapsed_s > self.config.max_minutes * 60), device=self.device)
        return self.engine.total(late) > 0

    def summary(self, done: int, start: int, last: RlRow | None) -> dict[str, Any]:
        """What the manifest keeps."""
        return {
            "steps_done": done,
            "steps": self.config.steps,
            "resumed_at": start,
            "processes": self.world,
            "engine": self.config.engine,
            "problems": [len(data.problems) for data in self.phases],
            "left_out_too_long": [len(data.too_long) for data in self.phases],
            "left_out_not_split": [len(data.not_split) for data in self.phases],
            "last": last.model_dump() if last is not None else None,
        }


def check(config: RlConfig) -> None:
    """Refuse settings that do not go together."""
    released = config.released_behaviour
    if config.engine != "local" and (released.reset_optimizer or released.weights_16bit):
        raise DiceError("released_behaviour.reset_optimizer and weights_16bit need engine: local.")
    names = [phase.name or phase.task for phase in config.phases]
    if len(set(names)) < len(names):
        raise DiceError(f"two phases are called '{max(names, key=names.count)}'; give them names (phases: name).")


def latest_or_refuse(folder: Path, identity: str) -> Checkpoint | None:
    """The newest checkpoint; one sentence for one whose description cannot be read."""
    try:
        return latest_checkpoint(folder, identity)
    except (ValueError, KeyError) as error:
        raise DiceError(f"{folder}: the newest checkpoint's checkpoint.json is damaged; delete its folder.") from error


def _kept(out: Path) -> str:
    found = sorted(path.name for path in (out / "checkpoints").glob("step-*"))
    return f"{found[-1]} is intact, run again to go on from it." if found else "there is no checkpoint yet."


def _answer_row(step: int, answer: Answer) -> AnswerRow:
    verdict = answer.verdict
    return AnswerRow(
        step=step,
        problem_id=answer.asked.problem.id,
        group=answer.asked.group,
        sample=answer.asked.sample,
        seed=answer.completion.request.seed,
        text=answer.text,
        code=answer.candidate.code,
        status=answer.status,
        message=verdict.message if verdict is not None else answer.candidate.reason,
        reward=answer.reward,
        findings=sorted({finding.name for finding in verdict.deception}) if verdict is not None else [],
        n_tokens=len(answer.completion.ids),
        n_forwards=answer.completion.n_forwards,
    )


def progress_line(row: RlRow) -> str:
    """One line for people."""
    reward = "-" if row.reward is None else f"{row.reward:.3f}"
    learnt = "" if row.loss is None else f", KL {row.kl:.2g}, entropy {row.entropy:.3f}, clipped {row.clip_share:.1%}"
    return (
        f"{row.phase}: reward {reward}, signal {row.signal_share:.0%}{learnt}, {row.response_tokens:.0f} tokens, "
        f"deceptive {row.deception_rate:.1%}, {row.seconds:.0f} s (wait {row.wait_share:.0%})"
    )


def _device(config: RlConfig) -> torch.device:
    if config.device == "cuda" and not torch.cuda.is_available():
        raise DiceError("device is cuda, and PyTorch finds no GPU here.")
    if config.device == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def rl(config: RlConfig) -> dict[str, Any]:
    """Run the stage; under torchrun, one call per process."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 and config.engine == "local":
        return RlRun(config).train()
    if not dist.is_initialized():
        gpu = config.device != "cpu" and torch.cuda.is_available()
        if gpu:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        for name, value in (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29513"), ("RANK", "0"), ("WORLD_SIZE", "1")):
            os.environ.setdefault(name, value)
        dist.init_process_group("nccl" if gpu else "gloo")
    try:
        return RlRun(config).train()
    finally:
        dist.destroy_process_group()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice rl`."""
    parser.add_argument("--config", help="YAML with the fields of RlConfig (docs/rl.md)")
    parser.add_argument("--model", help="checkpoint folder to start from")
    parser.add_argument("--out", help="folder of the run")
    parser.add_argument("--engine", choices=["local", "zero2", "zero3"])
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--max-minutes", type=float, help="stop with a checkpoint; the same command goes on")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override one field")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice rl`."""
    names = ("model", "out", "engine", "device", "max_minutes")
    flags = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    config = load_config(RlConfig, args.config, args.set, flags)
    summary = rl(config)
    if int(os.environ.get("RANK", "0")) == 0:
        last = summary["last"]
        state = f"reward {last['reward']}" if last else "nothing was left to do"
        if summary["steps_done"] == summary["steps"]:
            print(f"{summary['steps']} steps, {state}; model in {config.out}/model")
        else:
            print(
                f"paused after step {summary['steps_done']} of {summary['steps']}, {state}; run the same command again"
            )
    return 0
