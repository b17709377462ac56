"""How much memory of a GPU a job takes, by the arithmetic that the stages themselves check before they begin."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dice.config import parse_config
from dice.errors import DiceError
from dice.model.families import FAMILIES
from dice.study.config import Base
from dice.study.costs import PROMPT_TOKENS, answering_spec, billions, is_local, problems
from dice.study.exams import examined
from dice.study.plan import Plan
from dice.study.units import RELEASED, SERVED, asked

if TYPE_CHECKING:  # they import torch, which a plan without GPUs does not need
    from dice.model.transformer import ModelConfig

LONGEST_PROMPT = 6522
"""Tokens of KernelBench's longest prompt (docs/measurements/decoding.md)."""
LONGEST_RL_PROMPT = 2560
"""Tokens of an infilling problem of the authors' file, at most; their end-to-end programs take 1,130."""
_VLLM_SHARE = 0.9
"""Of the GPU that vLLM takes where it is told no other (`--gpu-memory-utilization`)."""
_GIB = 2**30


class GpuMemory(NamedTuple):
    """GiB that a job takes of each of its GPUs."""

    gib: float
    weights_alone: bool = False
    """Only the weights are counted; the job takes more, and how much is not known."""


NO_GPU = GpuMemory(0.0)
"""What a job without a GPU takes."""


def gpu_memory(plan: Plan) -> dict[str, dict[str, GpuMemory]]:
    """Rule -> unit -> what its jobs take at most, with the study's lengths. Imports the stages, and so torch."""
    answering = [unit for unit in (*plan.units, *examined(plan)) if is_local(plan, unit)]
    return {
        "sft": {unit: found for unit in plan.models_by("sft") if (found := training_memory(plan, unit))},
        "rl": {unit: found for unit in plan.models_by("rl") if (found := training_memory(plan, unit))},
        "generate": {unit: decoding_memory(plan, unit) for unit in answering if not unit.startswith(SERVED)},
        "serve": {unit: serving_memory(plan, unit) for unit in answering if unit.startswith(SERVED)},
    }


def geometry(plan: Plan, unit: str) -> ModelConfig | None:
    """The model's geometry: of its checkpoint where that is on this machine, else by hub.yaml or the scale; None: unknown.

    What vLLM alone can run counts as a Llama: the norms that Gemma has in addition are a parameter in 20,000.
    """
    from dice.model.checkpoint import read_config
    from dice.model.transformer import ModelConfig

    family = found if (found := plan.family(unit)) in FAMILIES else None
    name = unit.removeprefix(RELEASED).removeprefix(SERVED)
    origin = plan.lineage(unit)[-1] if name == unit else f"{RELEASED}{name}"
    base = plan.base(origin) if name == unit else None
    folder = (base and base.checkpoint) or plan.model(origin)
    if family and Path(folder, "config.json").is_file():
        try:
            return read_config(folder)
        except DiceError:  # the stage that reads it says why
            return None
    known = FAMILIES[family or "llama"]
    switches = {"qk_norm": bool(known.qk_norm), "attention_bias": bool(known.attention_bias)}
    fields = plan.registry.hub[plan.repository(origin)].geometry if base is None or base.hub else _scratch(plan, base)
    return ModelConfig(model_type=family or "llama", **(switches | fields)) if fields else None


def _scratch(plan: Plan, base: Base) -> dict[str, Any] | None:
    """Fields of a model from scratch; None where its vocabulary is not known before its tokenizer is made."""
    vocabulary = plan.study.tokenizer.get("vocab_size")
    return {"vocab_size": -(-vocabulary // 64) * 64, **base.sft["geometry"]} if vocabulary else None


def weight_memory(unit: str) -> GpuMemory:
    """The weights alone, in 16 bits, by the size in the model's name: where no more is known."""
    return GpuMemory(2e9 * billions(unit) / _GIB, weights_alone=True)


def _prompts(plan: Plan, exam: str | None, samples: int) -> list[int]:
    """Tokens of each prompt that is answered, the longest first; of one where how many there are is not known."""
    prompts = [PROMPT_TOKENS] * max(1, problems(plan, exam) * samples)
    if plan.suite_of(exam).version.startswith("kernelbench"):
        prompts[0] = LONGEST_PROMPT
    return prompts


def serving_memory(plan: Plan, unit: str) -> GpuMemory:
    """The smallest GPU of whose share a local vLLM holds the weights and the cache of what it is asked at a time.

    Cache: of the longest answers and prompts, `concurrency` of them, or as many as the scale's `memory_gib` has room for; and
    of one sequence of `--max-model-len` (else what the model takes), without which vLLM does not start. Not its activations.
    """
    from dice.decoding.memory import cache_bytes, weight_bytes
    from dice.servers.ask import AskConfig

    name, exam = asked(unit)
    config = parse_config(AskConfig, answering_spec(plan, unit), unit)
    shape, server = geometry(plan, name), config.server
    if shape is None or server is None or server.local is None:
        return weight_memory(unit)
    options = _options(server.local.arguments)
    told = options.get("--max-model-len", "")
    longest = int(told) if told.isdecimal() else shape.max_position_embeddings
    weight, prompts = weight_bytes(shape, 2), _prompts(plan, exam, config.samples)[: server.concurrency]
    room, answers = plan.study.generate.get("memory_gib", math.inf), len(prompts)

    def total(answers: int) -> float:
        tokens = sum(prompts[:answers]) + answers * config.max_new_tokens
        return (weight + cache_bytes(shape, 0, max(tokens, longest), 2)) / _GIB

    while answers > 1 and total(answers) > room:
        answers -= 1
    return GpuMemory(total(answers) / float(options.get("--gpu-memory-utilization", _VLLM_SHARE)))


def _options(arguments: Sequence[str]) -> dict[str, str]:
    """`--name value` and `--name=value` of a command line."""
    split = [part for argument in arguments for part in argument.split("=", 1)]
    return dict(itertools.pairwise(split))


def decoding_memory(plan: Plan, unit: str) -> GpuMemory:
    """Weights, cache and working memory as `dice generate` plans them; for one answer at a time where more do not fit."""
    from dice.decoding.autoregressive import AutoregressiveConfig
    from dice.decoding.samplers import lacks_fast_engine
    from dice.decoding.sampling import SamplingConfig
    from dice.evaluation.generate import GenerateConfig, decoding_of, planned_memory

    name, exam = asked(unit)
    shape = geometry(plan, name)
    if shape is None:
        return weight_memory(unit)
    config = parse_config(GenerateConfig, answering_spec(plan, unit), unit)
    if config.autoregressive is None:  # the checkpoint says how to sample, so count the costliest way
        sampled = SamplingConfig(temperature=1.0, top_p=0.5)
        config = replace(config, autoregressive=AutoregressiveConfig(sampling=sampled))
    lengths = [(prompt, config.max_new_tokens) for prompt in _prompts(plan, exam, config.samples)]
    engine = "plain" if lacks_fast_engine(shape, decoding_of(config, shape)) else "fast"
    try:
        total = planned_memory(config, shape, lengths, itemsize=2, engine=engine).total
    except DiceError:
        total = planned_memory(config, shape, lengths, itemsize=2, engine=engine, most=1).total
    return GpuMemory(total / _GIB)


def training_memory(plan: Plan, unit: str) -> GpuMemory | None:
    """What `dice sft` or `dice rl` checks before it begins; None: the geometry is not known."""
    from dice.training.memory import rl_memory, sft_memory
    from dice.training.rl_config import RlConfig
    from dice.training.sft_config import SftConfig

    shape, gpus = geometry(plan, unit), max(1, plan.study.gpus)
    if shape is None:
        return None
    spec = plan.training_spec(unit) | {"out": plan.model(unit)}
    if plan.model_rule(unit) == "sft":
        memory = sft_memory(parse_config(SftConfig, spec, unit), shape, gpus, 2)
    else:
        memory = rl_memory(parse_config(RlConfig, spec, unit), shape, gpus, 2, prompt=LONGEST_RL_PROMPT)
    return GpuMemory(memory.total / _GIB)
