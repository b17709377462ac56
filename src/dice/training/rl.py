"""`dice rl`: BiC-RL (paper, section 4.2), block-diffusion policies whose reward is a verified kernel.

A step takes the scheduled problems, decodes answers with the policy's own weights (dynamic block decoding) and verifies
each while others are decoded. An answer earns 0 or 1; rewards become z-scores within the answers of a problem, and
TraceRL's loss replays the recorded trajectories. Everything follows from the seed and the step, so a resumed run follows
the curve of an uninterrupted one. All steps share one process group. Contract: docs/guides/reinforcement-learning.md.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from dice.config import add_options, config_from, to_spec
from dice.data.tokenizer import load_tokenizer, save_tokenizer
from dice.decoding.decoder import Decoder
from dice.decoding.memory import check_cache
from dice.errors import DiceError, HarnessError
from dice.manifest import Stopwatch, write_manifest
from dice.model.checkpoint import check_block_size, load_model, read_config, save_state
from dice.model.transformer import Transformer
from dice.training.checkpoints import resume, save_checkpoint, what_is_left
from dice.training.curriculum import Curriculum
from dice.training.engine import TrainingEngine, make_engine
from dice.training.history import History
from dice.training.memory import rl_memory, rollout_slots
from dice.training.processes import process_group, rank_and_world, training_device
from dice.training.rl_batch import Batches
from dice.training.rl_config import RESUMABLE_CHANGES, RlConfig, check
from dice.training.rl_data import PhaseData, load_phase
from dice.training.rl_history import RlRow
from dice.training.rl_report import answer_fields, progress_line
from dice.training.rl_update import Updater, compare, learning_rate, trajectory_of
from dice.training.rollout import Verifier, rewards_of
from dice.training.setup import check_memory, mask_token, run_identity, to_train, training_dtype
from dice.training.tracerl_loss import PolicyObjective


class RlRun:
    """One process of a run."""

    def __init__(self, config: RlConfig) -> None:
        check(config)
        self.config = config
        self.rank, self.world = rank_and_world()
        self.device = training_device(config.device)
        self.dtype = training_dtype(config.dtype, self.device)
        self.geometry = read_config(config.model)
        self.block_size = config.rollout.decoding.block_size
        if self.geometry.model_type != "sdar":
            raise DiceError(f"{config.model}: BiC-RL needs a block-diffusion model, this one is autoregressive.")
        check_block_size(config.model, self.geometry, self.block_size, "rollout.decoding.block_size")
        folder = config.tokenizer or config.model
        self.tokenizer = load_tokenizer(folder, family="sdar")
        self.mask_id = mask_token(self.tokenizer, folder)
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
                difficulty=config.difficulty,
                whole_file=whole,
            )
            for phase in config.phases
        ]
        self.curriculum = Curriculum(config, [data.problems for data in self.phases])
        self.longest_prompt = max(len(problem.prompt) for data in self.phases for problem in data.problems)
        memory = rl_memory(config, self.geometry, self.world, self.dtype.itemsize, prompt=self.longest_prompt)
        check_memory("rl", memory, config.memory_gib, self.device)
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
        # a sharding engine owns its tensors, so a copy draws the answers, and takes over the weights after each step
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
        return to_train(model, config.activation_checkpointing, compiled=config.compile)

    def _identity(self) -> str:
        spec = {name: value for name, value in to_spec(self.config).items() if name not in RESUMABLE_CHANGES}
        for name in ("machine", "url"):  # where it is verified changes no verdict
            spec["reward"].pop(name)
        return run_identity(spec, self.config.model, (path for phase in self.config.phases for path in phase.problems))

    def decoder(self) -> Decoder:
        """A decoder of the live weights; it is kept from step to step unless rollout.release is set."""
        if self._decoder is None:
            rollout = self.config.rollout
            fast = rollout.engine == "fast" or (
                rollout.engine == "auto" and self.device.type == "cuda" and self.dtype == torch.bfloat16
            )
            longest = self.longest_prompt + rollout.max_new_tokens
            slots = rollout_slots(self.config, self.world)
            if self.device.type == "cuda":
                # never fewer slots than planned: rounding, and so the answers, depend on their number
                free = torch.cuda.mem_get_info(self.device)[0]
                check_cache(self.geometry, slots, longest, self.dtype.itemsize, free)
            self._decoder = Decoder(
                self.sampler,
                rollout.decoding,
                mask_id=self.mask_id,
                stop_ids=self.tokenizer.ids.ends,
                max_batch=slots,
                max_length=longest,
                engine="fast" if fast else "plain",
            )
        return self._decoder

    def step(self, step: int, batches: Batches) -> RlRow:
        """One RL step: answers, rewards, updates."""
        config = self.config
        began = time.perf_counter()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        batch = batches.take(step)
        if config.rollout.release:
            self._decoder = None
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
        groups = batch.groups
        compared = compare(rewards_of(groups))
        trajectories = [
            trajectory_of(answer.completion, advantage, config.released_behaviour, self.tokenizer)
            for group, scores in zip(groups, compared.advantages, strict=True)
            for answer, advantage in zip(group, scores, strict=True)
            if advantage is not None
        ]
        before = time.perf_counter()
        report = self.updater.update(trajectories, step)
        if report.updates and self.sampler is not self.updater.objective.model:
            self.engine.copy_to(self.sampler)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        ended = time.perf_counter()
        _, phase, inside = self.curriculum.place(step)
        pool = self.curriculum.pool(step)
        levels = [group[0].asked.problem.difficulty for group in groups]
        memory = torch.cuda.max_memory_allocated(self.device) / 2**30 if self.device.type == "cuda" else None
        return RlRow(
            step=step,
            phase=phase.name or phase.task,
            task=phase.task,
            step_in_phase=inside,
            epoch=round(self.curriculum.schedule(step).epoch(inside), 4),
            level_mean=round(sum(levels) / len(levels), 4),
            redrawn=batch.redrawn,
            pool=None if pool is None else len(pool),
            host_errors=int(self.engine.total(torch.tensor(float(batch.host_errors), device=self.device))),
            learning_rate=learning_rate(config, 0, max(1, report.updates)),
            seconds=ended - began,
            rollout_s=batch.rollout_s,
            verify_s=batch.verify_s,
            wait_s=batch.wait_s,
            pool_s=batch.pool_s,
            update_s=ended - before,
            wait_share=batch.wait_s / (ended - began),
            peak_memory_gib=None if memory is None else round(memory, 2),
            **answer_fields(groups, compared),
            **dataclasses.asdict(report),
        )

    def train(self) -> dict[str, Any]:
        """Run the steps that are left, from the newest checkpoint on; returns the run's summary."""
        config = self.config
        watch, out = Stopwatch(), Path(config.out)
        checkpoint = resume(out, self.engine, self.identity)
        start = checkpoint.step if checkpoint else 0
        if start and self.sampler is not self.updater.objective.model:
            self.engine.copy_to(self.sampler)
        history = History(out, RlRow, step=start, tensorboard=config.tensorboard) if self.rank == 0 else None
        done, saved, last, slowest, began = start, start, None, 0.0, time.perf_counter()
        most = config.rollout.samples * -(-config.rollout.problems_per_step // self.world)
        local_world = int(os.environ.get("LOCAL_WORLD_SIZE", self.world))
        gpu = self.device.index if self.world > 1 and config.reward.backend == "cuda" else None
        with contextlib.ExitStack() as stack:
            bar = stack.enter_context(
                tqdm(total=config.steps, initial=start, desc="rl", unit="step", disable=self.rank != 0)
            )
            verifier = Verifier(config.reward, most_jobs=most, gpu=gpu, share=local_world)
            batches = Batches(
                config,
                self.curriculum,
                verifier,
                self.decoder,
                self.tokenizer.decode,
                done=start,
                tell=bar.set_postfix_str,
            )
            if checkpoint:
                batches.resume(checkpoint.folder)
            for step in range(start + 1, config.steps + 1):
                if self._out_of_time(time.perf_counter() - began + slowest):
                    break
                if not verifier.is_open:
                    stack.enter_context(verifier)
                try:
                    last = self.step(step, batches)
                    if history is not None:
                        history.append(last)
                except OSError as error:
                    raise HarnessError(
                        f"{out}: step {step} could not be written ({error.strerror}); {what_is_left(out)}"
                    ) from error
                done, slowest = step, max(slowest, last.seconds)
                bar.update()
                bar.set_postfix_str(progress_line(last))
                number, phase, inside = self.curriculum.place(step)
                phase_ends = inside == phase.steps
                if phase_ends and number + 1 < len(config.phases):
                    self.save_model(out / "phases" / f"{number + 1}-{phase.name or phase.task}")
                if step % config.save_every == 0 or phase_ends:
                    self.save(step, batches.save)
                    saved = step
        if done > saved:
            self.save(done, batches.save)
        if history is not None:
            history.close()
        summary = self.summary(done, start, last)
        if start < done < config.steps:
            self.save_model(out / "paused")
        if done == config.steps:
            shutil.rmtree(out / "paused", ignore_errors=True)
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

    def save(self, step: int, also: Callable[[Path], None] = lambda folder: None) -> None:
        """Write a checkpoint. Raises HarnessError when that fails; earlier checkpoints stay."""
        out, keep = Path(self.config.out), self.config.keep_checkpoints
        save_checkpoint(out, self.engine, step, self.identity, keep=keep, also=also)

    def save_model(self, folder: Path) -> None:
        """Write the policy as a checkpoint folder with its tokenizer."""
        weights = self.engine.weights()
        if weights is None:
            return
        try:
            save_state(weights, self.geometry, folder, dtype=self.dtype)
            save_tokenizer(self.tokenizer, folder)
        except OSError as error:
            raise HarnessError(
                f"{folder}: the model could not be written ({error.strerror}); {what_is_left(Path(self.config.out))}"
            ) from error

    def _out_of_time(self, elapsed_s: float) -> bool:
        """Whether the next step would end after `max_minutes`; the same answer in all processes."""
        if self.config.max_minutes is None:
            return False
        late = torch.tensor(float(elapsed_s > self.config.max_minutes * 60), device=self.device)
        return self.engine.total(late) > 0

    def summary(self, done: int, start: int, last: RlRow | None) -> dict[str, Any]:
        """The run's summary for the manifest."""
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


def rl(config: RlConfig) -> dict[str, Any]:
    """Run the stage; under torchrun, one call per process."""
    with process_group(config.engine, config.device):
        return RlRun(config).train()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice rl`."""
    add_options(parser, RlConfig, "model", "out", "engine", "device", "max_minutes")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice rl`."""
    config = config_from(args, RlConfig)
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
