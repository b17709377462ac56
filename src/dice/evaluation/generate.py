"""`dice generate`: answers of a model to prompts, with what each one cost and the order of its tokens."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import torch
from pydantic import Field
from tqdm import tqdm

from dice.config import add_options, config_from, spec_hash, stage_config, to_spec
from dice.data.chat_template import checkpoint_chat
from dice.data.tokenizer import CodeTokenizer, load_tokenizer
from dice.decoding.autoregressive import AutoregressiveConfig
from dice.decoding.block_diffusion import BlockDiffusionConfig
from dice.decoding.checkpoint_sampling import checkpoint_sampling
from dice.decoding.decoder import Engine
from dice.decoding.dream import DreamConfig
from dice.decoding.llada import LladaConfig
from dice.decoding.memory import GIB, MemoryPlan, plan_memory
from dice.decoding.requests import Completion, Request
from dice.decoding.samplers import Decoding, lacks_fast_engine, make_decoder, memory_layout
from dice.decoding.window import WindowConfig
from dice.errors import DiceError
from dice.evaluation.generation import Generation, sample_seed, split_thought
from dice.evaluation.prompts.stage import PromptRow
from dice.jsonl import Journal, read_jsonl, write_jsonl
from dice.kernels.api import extract_code
from dice.manifest import Stopwatch, sha256_file, weights_sha256, write_manifest
from dice.model.checkpoint import Dtype, check_block_size, load_model, read_config, stored_dtype, torch_dtype
from dice.model.families import FAMILIES, ModelType, Sampler
from dice.model.transformer import ModelConfig, compiled_pointwise


@stage_config
class GenerateConfig:
    """What `dice generate` reads, how it decodes, and what it writes."""

    model: str
    """Checkpoint folder (config.json and safetensors)."""
    prompts: str
    """prompts.jsonl of `dice prompts`."""
    family: ModelType | None = None
    """Family that the checkpoint must be of (`dice.model.families`); None: any."""
    out: str
    """generations.jsonl to write."""
    tokenizer: str | None = None
    """Folder of the tokenizer; None: the model's."""
    samples: int = Field(default=1, ge=1)
    """Answers per prompt."""
    seed: int = 0
    """Every sample's seed follows from this, the problem and the sample's number."""
    max_new_tokens: int = Field(default=4096, ge=1)
    """Longest answer in tokens."""
    chat: Literal["prompts", "checkpoint"] = "prompts"
    """Chat markup: the prompts have it, or (`checkpoint`) they are plain messages and get that of the model's template."""
    block_diffusion: BlockDiffusionConfig = BlockDiffusionConfig()
    """Decoding of SDAR and its kin. Which of the five fields counts, the model's family says (`dice.model.families`)."""
    autoregressive: AutoregressiveConfig | None = None
    """Decoding of a causal model; None: as its generation_config.json says, greedy where it has none."""
    llada: LladaConfig = LladaConfig()
    """Decoding of LLaDA."""
    dream: DreamConfig = DreamConfig()
    """Decoding of Dream and DiffuCoder."""
    window: WindowConfig = WindowConfig()
    """Decoding of WeDLM."""
    max_batch: int = Field(default=64, ge=1)
    """Most sequences in flight; fewer where memory allows no more. No effect on the answers but rounding."""
    memory_gib: float | None = Field(default=None, gt=0)
    """Memory of the device to plan for, in GiB; None: 92 % of a GPU's, no limit on a CPU."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto` takes a GPU where there is one."""
    dtype: Dtype | None = None
    """Type of the weights; None: as stored."""
    engine: Literal["auto", "plain", "fast"] = "auto"
    """`fast`: CUDA graphs and Triton kernels; `auto` takes it for bfloat16 weights on a GPU. The manifest says which."""


RESULT_FIELDS = (
    *("samples", "seed", "max_new_tokens", "chat", "dtype"),
    *("block_diffusion", "autoregressive", "llada", "dream", "window"),
)
"""Fields that change answers; with the weights, the tokenizer and the prompts they name the journal of an interrupted run."""


def generate(config: GenerateConfig) -> list[Generation]:
    """Run the stage; returns the rows in the order of the prompts. An interrupted run is taken up where it stopped."""
    watch = Stopwatch()
    prompts = list(read_jsonl(config.prompts, PromptRow))
    if not prompts:
        raise DiceError(f"{config.prompts}: no prompts.")
    if len({row.id for row in prompts}) < len(prompts):
        raise DiceError(f"{config.prompts}: a problem occurs twice; give one prompt for each.")
    geometry = read_config(config.model)
    if config.family not in (None, geometry.model_type):
        raise DiceError(f"{config.model}: it is of the family {geometry.model_type}, not {config.family}.")
    family = FAMILIES[geometry.model_type]
    if config.autoregressive is None and family.sampler == "autoregressive":
        config = dataclasses.replace(config, autoregressive=checkpoint_sampling(config.model))
    tokenizer = load_tokenizer(config.tokenizer or config.model, family=geometry.model_type)
    weights = weights_sha256(config.model)
    spec = to_spec(config)
    texts = {row.id: row.prompt for row in prompts}
    if config.chat == "checkpoint":
        chat = checkpoint_chat(config.tokenizer or config.model, tokenizer)
        texts = {row: chat(text) for row, text in texts.items()}
    work = {name: spec[name] for name in RESULT_FIELDS} | {"weights": weights, "prompts": sha256_file(config.prompts)}
    # By content, and the prompts as the checkpoint's template has made them: a folder keeps its name when its files change.
    work |= {"tokenizer": tokenizer.backend.to_str(), "control": tokenizer.ids.model_dump(mode="json"), "texts": texts}
    out = Path(config.out)
    journal_path = out.with_name(f".{out.name}.{spec_hash(work)[:16]}.partial")
    done: dict[tuple[str, int], Generation] = {}
    if journal_path.exists():
        Journal(journal_path).close()  # cuts a torn last line
        done = {(row.problem_id, row.sample): row for row in read_jsonl(journal_path, Generation)}
    wanted = [(row, sample) for row in prompts for sample in range(config.samples)]
    missing = [(row, sample) for row, sample in wanted if (row.id, sample) not in done]
    engine: Engine | None = None
    memory: MemoryPlan | None = None
    if missing:
        ids = tokenizer.encode_batch([texts[row.id] for row, _ in missing])
        requests = [
            Request(tuple(tokens), config.max_new_tokens, sample_seed(config.seed, row.id, sample), (row, sample))
            for tokens, (row, sample) in zip(ids, missing, strict=True)
        ]
        device, engine = _place(config, geometry)
        memory = _memory(config, geometry, requests, device, engine)
        print(f"generate: {memory}", file=sys.stderr)
        longest = max(len(request.prompt) for request in requests) + config.max_new_tokens
        if longest > geometry.max_position_embeddings and family.sampler in ("llada", "dream"):
            print(
                f"generate: up to {longest:,} positions, and the model was trained with "
                f"{geometry.max_position_embeddings:,}; the vendor's script says nothing and goes on, and so does this one.",
                file=sys.stderr,
            )
        with Journal(journal_path) as journal:
            for row in _rows(
                _completions(config, geometry, tokenizer, requests, memory, device, engine),
                tokenizer,
                len(done),
                len(wanted),
                control=family.sampler != "llada" or config.llada.compat == "none",
            ):
                journal.append(row)
                done[row.problem_id, row.sample] = row
    rows = [done[row.id, sample] for row, sample in wanted]
    write_jsonl(config.out, rows)
    tokens, forwards = (sum(getattr(row, name) for row in rows) for name in ("n_tokens", "n_forwards"))
    extra = {
        "answers": len(rows),
        "answers_resumed": len(wanted) - len(missing),
        "engine": engine,
        "batches": [[one.slots, one.length] for one in memory.batches] if memory else None,
        "tokens": tokens,
        "tokens_per_forward": round(tokens / max(1, forwards), 3),
        "without_code": sum(row.code is None for row in rows),
        "cut_off": sum(row.finish_reason == "length" for row in rows),
        "weights": weights,
    }
    write_manifest(
        config.out, stage="generate", spec=spec, watch=watch, inputs=[config.prompts], seeds=[config.seed], extra=extra
    )
    journal_path.unlink(missing_ok=True)
    return rows


def _place(config: GenerateConfig, geometry: ModelConfig) -> tuple[str, Engine]:
    """Device and engine. Raises DiceError for blocks that the model was not trained with, and without the GPU asked for."""
    decoding = decoding_of(config, geometry)
    if isinstance(decoding, BlockDiffusionConfig):
        check_block_size(config.model, geometry, decoding.block_size, "block_diffusion.block_size")
    device = config.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    elif device == "cuda" and not torch.cuda.is_available():
        raise DiceError("device is cuda, and PyTorch finds no GPU here.")
    sixteen = (torch_dtype(config.dtype) if config.dtype else stored_dtype(config.model)) == torch.bfloat16
    lacks = lacks_fast_engine(geometry, decoding)
    if config.engine == "fast" and lacks:
        raise DiceError(f"{config.model}: the fast engine has no {lacks}; use engine 'plain'.")
    fast = config.engine == "fast" or (config.engine == "auto" and device == "cuda" and sixteen)
    if fast and lacks:
        print(f"generate: engine 'plain', because the fast one has no {lacks}.", file=sys.stderr)
    return device, "fast" if fast and not lacks else "plain"


def decoding_of(config: GenerateConfig, geometry: ModelConfig) -> Decoding:
    """The decoding of the model's family."""
    by_sampler: dict[Sampler, Decoding | None] = {
        "block_diffusion": config.block_diffusion,
        "autoregressive": config.autoregressive,
        "llada": config.llada,
        "dream": config.dream,
        "window": config.window,
    }
    decoding = by_sampler[FAMILIES[geometry.model_type].sampler]
    assert decoding is not None  # `generate` has read it from the checkpoint
    return decoding


def planned_memory(
    config: GenerateConfig,
    geometry: ModelConfig,
    lengths: Sequence[tuple[int, int]],
    *,
    itemsize: int,
    engine: Engine,
    most: int | None = None,
) -> MemoryPlan:
    """What decoding takes of `memory_gib` for these tokens of prompts and answers; `most`: so many answers at a time,
    whatever there is."""
    decoding = decoding_of(config, geometry)
    limit = config.memory_gib if most is None else None
    return plan_memory(
        geometry,
        lengths,
        **memory_layout(decoding),
        itemsize=itemsize,
        sampling=decoding.sampling,
        max_batch=most or config.max_batch,
        fast=engine == "fast",
        available=None if limit is None else int(limit * GIB),
    )


def _memory(
    config: GenerateConfig, geometry: ModelConfig, requests: list[Request], device: str, engine: Engine
) -> MemoryPlan:
    """How many answers at a time. Raises DiceError where none fits, or where others use the memory that was planned."""
    if config.memory_gib is None and device == "cuda":
        config = dataclasses.replace(config, memory_gib=0.92 * torch.cuda.get_device_properties(0).total_memory / GIB)
    dtype = torch_dtype(config.dtype) if config.dtype else stored_dtype(config.model)
    lengths = [(len(request.prompt), request.max_new_tokens) for request in requests]
    plan = planned_memory(config, geometry, lengths, itemsize=dtype.itemsize, engine=engine)
    if device == "cuda" and (free := torch.cuda.mem_get_info()[0]) < plan.total:
        raise DiceError(
            f"{free / GIB:.1f} GiB of the GPU are free, and decoding takes {plan}; set memory_gib, or free it."
        )
    return plan


def _completions(
    config: GenerateConfig,
    geometry: ModelConfig,
    tokenizer: CodeTokenizer,
    requests: list[Request],
    memory: MemoryPlan,
    device: str,
    engine: Engine,
) -> Iterator[Completion]:
    """The answers, batch by batch, each with a cache of its own."""
    model = load_model(config.model, device=device, dtype=torch_dtype(config.dtype) if config.dtype else None).eval()
    if device == "cuda" and FAMILIES[geometry.model_type].sampler in ("llada", "dream"):
        model.use(compiled_pointwise())  # whole canvases: what stands between products is worth a kernel
    for batch in memory.batches:
        decoder = make_decoder(
            model,
            decoding_of(config, geometry),
            mask_id=tokenizer.ids.mask,
            stop_ids=tokenizer.ids.ends,
            max_batch=batch.slots,
            max_length=batch.length,
            engine=engine,
        )
        mine = [requests[place] for place in batch.requests]
        for request in mine:  # before any of them is decoded
            decoder.check(request)
        yield from decoder.run(mine)
        del decoder  # its cache goes before the next one comes


def _rows(
    completions: Iterator[Completion], tokenizer: CodeTokenizer, done: int, total: int, *, control: bool
) -> Iterator[Generation]:
    """`control`: control tokens inside an answer are part of its text."""
    with tqdm(total=total, initial=done, unit="answer", desc="generate", smoothing=0.05) as bar:
        tokens = forwards = 0
        for completion in completions:
            row = _row(completion, tokenizer, control)
            tokens, forwards = tokens + len(completion.ids), forwards + completion.n_forwards
            speed = tokens / max(1e-9, bar.format_dict["elapsed"])
            bar.set_postfix_str(f"{speed:.0f} tokens/s, {tokens / forwards:.2f} tokens/forward", refresh=False)
            bar.update()
            yield row


def _row(completion: Completion, tokenizer: CodeTokenizer, control: bool) -> Generation:
    prompt, sample = completion.request.key
    ids = completion.ids[:-1] if completion.finish_reason == "stop" else completion.ids
    whole = tokenizer.decode(ids, control=control)
    thought, text = split_thought(whole)
    if not thought:  # nothing was told apart; an empty section of reasoning stays where it is
        thought, text = None, whole
    return Generation(
        problem_id=prompt.id,
        sample=sample,
        seed=completion.request.seed,
        prompt_sha256=prompt.prompt_sha256,
        text=text,
        thought=thought,
        code=extract_code(text).code if prompt.task == "end_to_end" else None,
        n_tokens=len(completion.ids),
        n_forwards=completion.n_forwards,
        seconds=round(completion.seconds, 4),
        finish_reason=completion.finish_reason,
        order=list(completion.step_map),
        ends=[*tokenizer.ends(ids), *[len(text)] * (len(completion.ids) - len(ids))],
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice generate`."""
    names = ("model", "prompts", "out", "samples", "seed", "max_new_tokens", "max_batch", "device")
    add_options(parser, GenerateConfig, *names)


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice generate`."""
    config = config_from(args, GenerateConfig)
    rows = generate(config)
    tokens, forwards = (sum(getattr(row, name) for row in rows) for name in ("n_tokens", "n_forwards"))
    median = sorted(row.n_tokens or 0 for row in rows)[math.floor(len(rows) / 2)]
    print(
        f"{len(rows)} answers written to {config.out}: {sum(row.code is not None for row in rows)} with code, "
        f"median {median} tokens, {tokens / max(1, forwards):.2f} tokens per forward"
    )
    return 0
