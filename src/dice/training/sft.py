"""`dice sft`: supervised fine-tuning on pairs, by block diffusion or next-token prediction.

A run is a folder: `model/` (the trained checkpoint with its tokenizer), `history.jsonl`, `tensorboard/` and
`checkpoints/`. Packs and noise follow from the seed and the step alone, so one device, several, and any accumulation
give the same curve, and a resumed run follows the curve of an uninterrupted one.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import shutil
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from dice.config import add_options, config_from, to_spec
from dice.data.pair import Pair, from_published, read_pairs
from dice.data.tokenizer import CodeTokenizer, load_tokenizer, save_tokenizer
from dice.errors import DiceError
from dice.manifest import Stopwatch, write_manifest
from dice.model.checkpoint import GENERATION_CONFIG, check_block_size, load_model, read_config, save_state
from dice.model.transformer import ModelConfig, Transformer
from dice.training.checkpoints import resume, save_checkpoint
from dice.training.engine import TrainingEngine, make_engine
from dice.training.history import History, HistoryRow, read_history
from dice.training.losses import (
    Objective,
    TrainingRows,
    causal_rows,
    diffusion_rows,
    draw_noise,
    peak_flops,
    step_flops,
)
from dice.training.memory import sft_memory
from dice.training.packing import GPU_ROWS, Pack, Sample, encode_pairs, pack_samples
from dice.training.processes import process_group, rank_and_world, training_device
from dice.training.setup import check_memory, mask_token, run_identity, to_train, training_dtype
from dice.training.sft_config import RESUMABLE_CHANGES, SftConfig, learning_rate

AHEAD = 2
"""Steps that are prepared ahead."""


class PackedSteps:
    """The packs of each step: every epoch packs the samples anew, and each step takes `packs_per_step` packs.

    The last packs that fill no step are not trained on (`left_over` packs).
    """

    def __init__(self, samples: list[Sample], config: SftConfig) -> None:
        self._samples, self._config = samples, config
        per_step = config.packs_per_step
        packs = sum(len(self._epoch(epoch)) for epoch in range(config.epochs))
        self.steps = config.max_steps or packs // per_step
        self.left_over = 0 if config.max_steps else packs % per_step
        if self.steps == 0:
            raise DiceError(
                f"{len(samples)} samples fill {packs} packs in {config.epochs} epochs, fewer than packs_per_step "
                f"{per_step}; lower it or the window."
            )

    def _epoch(self, epoch: int) -> list[Pack]:
        return pack_samples(self._samples, self._config.window, np.random.default_rng([self._config.seed, epoch]))

    def __iter__(self) -> Iterator[tuple[float, list[Pack]]]:
        """Yield (epochs seen after the step, packs) for every step from the first."""
        waiting: list[tuple[float, Pack]] = []
        epoch = 0
        for _ in range(self.steps):
            while len(waiting) < self._config.packs_per_step:
                packs = self._epoch(epoch)
                waiting += [(epoch + (place + 1) / len(packs), pack) for place, pack in enumerate(packs)]
                epoch += 1
            group, waiting = waiting[: self._config.packs_per_step], waiting[self._config.packs_per_step :]
            yield group[-1][0], [pack for _, pack in group]


@dataclass(frozen=True)
class Prepared:
    """One process's part of an optimizer step."""

    index: int
    """Number of the step, from 0."""
    epoch: float
    """Epochs seen after the step."""
    tokens: int
    """Tokens of the packs of the whole step."""
    rows: list[TrainingRows]
    normaliser: int
    """Labelled tokens of the whole step."""
    counts: Tensor
    """[3]: rows, targets, operations."""


class Trainer:
    """One process of a run."""

    def __init__(self, config: SftConfig) -> None:
        self.config = config
        self.device = training_device(config.device)
        self.dtype = training_dtype(config.dtype, self.device)
        _, world = rank_and_world()
        if config.packs_per_step % world:
            raise DiceError(f"packs_per_step {config.packs_per_step} is no multiple of the {world} processes.")
        self.geometry, self.tokenizer = _geometry_and_tokenizer(config)
        samples, self.dropped = encode_pairs(
            _read(config),
            self.tokenizer,
            config.prompt,
            block_size=config.block_size if config.objective == "block_diffusion" else 1,
            window=config.window,
            task=config.task,
            on_long=config.on_long,
        )
        longest = max(samples, key=lambda sample: len(sample.ids))  # positions start anew with each sample of a pack
        if len(longest.ids) > self.geometry.max_position_embeddings:
            raise DiceError(
                f"pair '{longest.id}' has {len(longest.ids)} tokens, and the model has "
                f"{self.geometry.max_position_embeddings} positions; lower the window and set on_long to drop."
            )
        self.samples = len(samples)
        self.packed_steps = PackedSteps(samples, config)
        share = max(1 - sample.prompt_length / len(sample.ids) for sample in samples)
        memory = sft_memory(config, self.geometry, world, self.dtype.itemsize, answer_share=share)
        check_memory("sft", memory, config.memory_gib, self.device)
        self.engine: TrainingEngine = make_engine(
            config.engine,
            Objective(self._model(), config.head_chunk, config.attention),
            config.optimizer,
            micro_batches=config.packs_per_step // world,
            zero_options=config.zero_options,
        )
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else ""
        self.peak = peak_flops(name)
        spec = {name: value for name, value in to_spec(config).items() if name not in RESUMABLE_CHANGES}
        self.identity = run_identity(spec, config.model, config.pairs)

    def _model(self) -> Transformer:
        config = self.config
        if config.model is not None:
            model = load_model(config.model, device=self.device, dtype=self.dtype)
        else:
            model = Transformer(self.geometry).initialise(config.seed).to(self.device, self.dtype)
        model.recompute_gates = config.recompute_gates
        return to_train(model, config.activation_checkpointing, compiled=config.compile)

    def rows(self, pack: Pack, number: int) -> TrainingRows:
        """The model's input for the pack with this number in the run."""
        config = self.config
        multiple = GPU_ROWS if self.device.type == "cuda" else 1
        if config.objective == "autoregressive":
            return causal_rows(pack, multiple=multiple)
        noise = draw_noise(
            pack,
            np.random.default_rng([config.seed, 1 << 32, number]),
            per=config.noise_per,
            block_size=config.block_size,
            epsilon=config.epsilon,
        )
        assert self.tokenizer.ids.mask is not None
        return diffusion_rows(
            pack, noise, block_size=config.block_size, mask_id=self.tokenizer.ids.mask, multiple=multiple
        )

    def normaliser(self, packs: list[Pack]) -> int:
        """Labelled tokens of a whole step."""
        if self.config.objective == "autoregressive":
            return max(1, sum(int((pack.labelled & (pack.positions > 0)).sum()) for pack in packs))
        return max(1, sum(int(pack.labelled.sum()) for pack in packs))

    def prepare(self, index: int, epoch: float, packs: list[Pack]) -> Prepared:
        """This process's part of a step, as far as no device is needed."""
        rows, counts = [], np.zeros(3)
        for place in range(self.engine.rank, len(packs), self.engine.world):
            part = self.rows(packs[place], index * self.config.packs_per_step + place)
            counts += (len(part.ids), len(part.targets), step_flops(self.geometry, part))
            rows.append(part)
        tokens = sum(len(pack.ids) for pack in packs)
        return Prepared(index, epoch, tokens, rows, self.normaliser(packs), torch.from_numpy(counts))

    def prepared(self, start: int) -> Iterator[Prepared]:
        """Steps from number `start` on, each prepared in a thread while the one before it runs."""
        with ThreadPoolExecutor(1, "prepare") as pool:
            waiting: deque[Future[Prepared]] = deque()
            for index, (epoch, packs) in enumerate(self.packed_steps):
                if index < start:
                    continue
                waiting.append(pool.submit(self.prepare, index, epoch, packs))
                if len(waiting) > AHEAD:
                    yield waiting.popleft().result()
            for ready in waiting:
                yield ready.result()

    def step(self, prepared: Prepared, elapsed: float = 0) -> HistoryRow:
        """One optimizer step; `elapsed`: share of `max_minutes` that has passed."""
        started = time.perf_counter()
        engine, config, steps = self.engine, self.config, self.packed_steps.steps
        loss = torch.zeros((), device=self.device)
        for rows in prepared.rows:
            loss += engine.backward(rows, prepared.normaliser)
        rate = learning_rate(config, max(prepared.index, elapsed * steps), steps)
        norm = engine.step(rate)
        total = engine.total(loss)  # waits for the device
        n_rows, n_targets, flops = (engine.total(count) for count in prepared.counts.to(self.device, torch.float32))
        if not math.isfinite(total):
            raise DiceError(
                f"step {prepared.index + 1}: the loss is {total}; lower the learning rate or check the data."
            )
        seconds = time.perf_counter() - started
        memory = torch.cuda.max_memory_allocated(self.device) / 2**30 if self.device.type == "cuda" else None
        return HistoryRow(
            step=prepared.index + 1,
            epoch=round(prepared.epoch, 4),
            loss=total,
            learning_rate=rate,
            grad_norm=norm,
            tokens=prepared.tokens,
            rows=int(n_rows),
            targets=int(n_targets),
            seconds=round(seconds, 4),
            tokens_per_s=round(prepared.tokens / seconds, 2),
            mfu=round(flops / seconds / (self.peak * engine.world), 4) if self.peak else None,
            peak_memory_gib=round(memory, 3) if memory is not None else None,
        )

    def train(self) -> dict[str, Any]:
        """Run, or resume, to the end and export the model; returns the summary (on every rank)."""
        watch, config = Stopwatch(), self.config
        out = Path(config.out)
        checkpoint = resume(out, self.engine, self.identity)
        start = checkpoint.step if checkpoint else 0
        history = (
            History(out, HistoryRow, step=start, tensorboard=config.tensorboard) if self.engine.rank == 0 else None
        )
        last: HistoryRow | None = None
        with tqdm(
            total=self.packed_steps.steps, initial=start, desc="sft", unit="step", disable=self.engine.rank != 0
        ) as progress:
            began = time.perf_counter() - self._trained_s(start)
            for prepared in self.prepared(start):
                elapsed = self._elapsed(began)
                if elapsed >= 1:
                    break
                last = self.step(prepared, elapsed)
                if history is not None:
                    history.append(last)
                share = f", MFU {last.mfu:.1%}" if last.mfu is not None else ""
                progress.set_postfix_str(f"loss {last.loss:.4f}, {last.tokens_per_s:.0f} tokens/s{share}")
                progress.update()
                if last.step % config.save_every == 0:
                    save_checkpoint(out, self.engine, last.step, self.identity, keep=config.keep_checkpoints)
        if last is not None and last.step % config.save_every:
            save_checkpoint(out, self.engine, last.step, self.identity, keep=config.keep_checkpoints)
        if history is not None:
            history.close()
        weights, summary = self.engine.weights(), self._summary(last, start)
        if weights is not None:
            save_state(weights, self.geometry, out / "model", dtype=self.dtype)
            save_tokenizer(self.tokenizer, out / "model")
            if config.model is not None and (sampling := Path(config.model, GENERATION_CONFIG)).is_file():
                shutil.copy(sampling, out / "model")  # how the base is sampled, for `dice generate`
            write_manifest(
                out / "model",
                stage="sft",
                spec=to_spec(config),
                watch=watch,
                inputs=[*config.pairs, out / "history.jsonl"],
                seeds=[config.seed],
                extra=summary,
            )
        return summary

    def _trained_s(self, step: int) -> float:
        """Seconds of the steps up to this one, the same in all processes; 0 where no time limit is set."""
        if self.config.max_minutes is None or not step:
            return 0.0
        seconds = (
            sum(row.seconds for row in read_history(self.config.out, HistoryRow)) if self.engine.rank == 0 else 0.0
        )
        return self.engine.total(torch.tensor(seconds, device=self.device))

    def _elapsed(self, began: float) -> float:
        """Share of `max_minutes` since `began`, the same in all processes; 0 where no time limit is set."""
        if self.config.max_minutes is None:
            return 0.0
        share = (time.perf_counter() - began) / 60 / self.config.max_minutes
        return self.engine.total(torch.tensor(share, device=self.device)) / self.engine.world

    def _summary(self, last: HistoryRow | None, start: int) -> dict[str, Any]:
        return {
            "parameters": self.geometry.matmul_parameters
            + self.geometry.head_parameters * (1 if self.geometry.tie_word_embeddings else 2),
            "samples": self.samples,
            "dropped_over_long": self.dropped,
            "packs_left_over": self.packed_steps.left_over,
            "steps": last.step if last is not None else start,
            "planned_steps": self.packed_steps.steps,
            "resumed_at": start,
            "processes": self.engine.world,
            "engine": self.config.engine,
            "last": last.model_dump() if last is not None else None,
        }


def _read(config: SftConfig) -> list[Pair]:
    pairs: list[Pair] = []
    for path in config.pairs:
        pairs += read_pairs(path, on_bad=config.on_bad, convert=from_published("unknown"))[0]
    if not pairs:
        raise DiceError("there are no pairs to train on; name at least one file (--pairs).")
    return pairs


def _geometry_and_tokenizer(config: SftConfig) -> tuple[ModelConfig, CodeTokenizer]:
    place = config.tokenizer or config.model
    if place is None:
        raise DiceError("name a tokenizer (--tokenizer); a model from scratch brings none.")
    diffusion = config.objective == "block_diffusion"
    tokenizer = load_tokenizer(place, family="sdar" if diffusion else "qwen3")
    if config.model is not None:
        geometry = read_config(config.model)
        if diffusion:
            check_block_size(config.model, geometry, config.block_size, "block_size")
    else:
        geometry = ModelConfig(vocab_size=-(-tokenizer.size // 64) * 64, **dataclasses.asdict(config.geometry))
    if tokenizer.size > geometry.vocab_size:
        raise DiceError(f"{place}: {tokenizer.size} tokens do not fit the model's {geometry.vocab_size}.")
    return dataclasses.replace(
        geometry,
        model_type="sdar" if diffusion else "qwen3",
        block_size=config.block_size if diffusion else None,
        mask_token_id=mask_token(tokenizer, place) if diffusion else None,
        eos_token_id=tokenizer.ids.ends,
    ), tokenizer


def sft(config: SftConfig) -> dict[str, Any]:
    """Run the stage; under torchrun, one call per process."""
    with process_group(config.engine, config.device):
        return Trainer(config).train()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice sft`."""
    names = ("pairs", "model", "tokenizer", "out", "objective", "max_steps", "engine")
    add_options(parser, SftConfig, *names)


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice sft`."""
    config = config_from(args, SftConfig)
    summary = sft(config)
    if int(os.environ.get("RANK", "0")) == 0:
        last = summary["last"]
        state = f"loss {last['loss']:.4f}" if last else "already complete"
        dropped = (
            f", {len(summary['dropped_over_long'])} over-long pairs dropped" if summary["dropped_over_long"] else ""
        )
        print(
            f"{summary['steps']} steps on {summary['samples']} samples, {state}{dropped}; model in {config.out}/model"
        )
    return 0
