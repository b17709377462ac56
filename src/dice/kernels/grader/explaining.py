"""What the author of one kernel is told besides the verdict: the work of a call, the card's limits, the use of its kernels.

Nothing here decides anything: it runs under `judging.explain` alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import FlopCounterMode

from dice.kernels.builder.resource_usage import Multiprocessor, blocks_at_once
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.reference import Reference
from dice.kernels.records.explanation import Card, Explanation, Work
from dice.kernels.sandbox.leaves import tensors_of

_FP32_LANES = {(7, 0): 64, (7, 5): 64, (8, 0): 64, (8, 6): 128, (8, 9): 128, (9, 0): 128, (10, 0): 128, (12, 0): 128}
"""fp32 units of a multiprocessor (CUDA programming guide, arithmetic instructions)."""
_RESERVED_BYTES = 1024
"""Shared memory that the system takes of each block from compute capability 8.0 on."""


def explain(run: CandidateRun) -> None:
    """Fill `record.explanation` after the trials."""
    with run.record.phase("explanation"):
        explanation = Explanation(orders_tried=run.record.orders_tried, work=work_of(run))
        if run.place.device.type == "cuda":
            properties = torch.cuda.get_device_properties(run.place.device)
            explanation.card = card_of(properties)
            for build in run.record.builds:
                explanation.kernels += run.place.builder.kernel_uses(build, processor_of(properties))
        run.record.explanation = explanation


def work_of(run: CandidateRun) -> Work | None:
    """What one call of the reference moves and multiplies, at least."""
    trial = run.last
    if trial is None:
        return None
    state = dict(run.reference.model(run.weights_seed).state_dict())
    leaves = tensors_of([trial.inputs, state, trial.expected])
    n_bytes = sum(leaf.numel() * leaf.element_size() for leaf in leaves)
    return Work(bytes=n_bytes, flop=flop_of(run.reference, run.weights_seed, trial.inputs))


def flop_of(reference: Reference, weights_seed: int, inputs: list[Any]) -> int | None:
    """Operations of one call, counted on tensors without data, so that no state of the reference changes; None where its
    program needs the data."""

    def without_data(value: Any) -> Any:
        return tree_map(lambda leaf: leaf.to("meta") if torch.is_tensor(leaf) else leaf, value)

    arguments = reference.init_inputs(weights_seed)
    try:
        with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
            reference.namespace["Model"](*without_data(arguments)).to("meta")(*without_data(inputs))
    except Exception:  # noqa: BLE001 - whatever the program raises without data
        return None
    return counter.get_total_flops()


def card_of(properties: Any) -> Card:
    """Peaks of a GPU from its properties (`torch.cuda.get_device_properties`)."""
    memory_khz, bus_bits, clock_khz = (
        getattr(properties, name, None) for name in ("memory_clock_rate", "memory_bus_width", "clock_rate")
    )
    lanes = _FP32_LANES.get((properties.major, properties.minor))
    return Card(
        bytes_per_s=2e3 * memory_khz * bus_bits / 8 if memory_khz and bus_bits else None,
        flop_per_s=2e3 * clock_khz * properties.multi_processor_count * lanes if clock_khz and lanes else None,
    )


def processor_of(properties: Any) -> Multiprocessor:
    """Limits of one multiprocessor of a GPU."""
    return Multiprocessor(
        threads=properties.max_threads_per_multi_processor,
        blocks=blocks_at_once((properties.major, properties.minor)),
        registers=properties.regs_per_multiprocessor,
        shared_bytes=properties.shared_memory_per_multiprocessor,
        reserved_bytes=_RESERVED_BYTES if properties.major >= 8 else 0,
    )
