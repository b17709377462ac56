"""Kernels that need fibres: their threads may wait for each other, or must run in lockstep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dice.kernels.cpu.regions import Region
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import WORD, Token, words

_BARRIERS = words(
    "__syncthreads __syncthreads_and __syncthreads_or __syncthreads_count __barrier_sync __barrier_sync_count "
    "barrier_arrive barrier_wait"
)
_ASSEMBLY = words("asm __asm__ __asm")  # an instruction in its string may be a barrier
_WARP_OPERATIONS = words(
    "__shfl __shfl_up __shfl_down __shfl_xor __shfl_sync __shfl_up_sync __shfl_down_sync __shfl_xor_sync __ballot "
    "__ballot_sync __any __any_sync __all __all_sync __activemask __match_any_sync __match_all_sync __syncwarp "
    "__reduce_add_sync __reduce_min_sync __reduce_max_sync __reduce_and_sync __reduce_or_sync __reduce_xor_sync"
)
_GROUP_WORDS = words(
    "sync shfl shfl_up shfl_down shfl_xor ballot any all tiled_partition coalesced_threads this_grid reduce "
    "inclusive_scan exclusive_scan labeled_partition binary_partition"
)
_COLLECTIVE_WORDS = words(
    "BlockReduce BlockScan WarpReduce WarpScan BlockLoad BlockStore BlockRadixSort BlockExchange mma_sync "
    "load_matrix_sync store_matrix_sync fill_fragment"
)
_SYNCHRONISING = _BARRIERS | _WARP_OPERATIONS | _COLLECTIVE_WORDS | _ASSEMBLY


def kernels_that_wait(source: CudaSource, regions: Sequence[Region]) -> set[str]:
    """Names of the kernels that may wait, directly or through what they name: functions, macros, types; never too few."""
    mentions: dict[str, set[str]] = {}
    for region in regions:
        mentions.setdefault(region.name or "lambda", set()).update(region.words)
    for name, body in source.macros.items():
        mentions.setdefault(name, set()).update(WORD.findall(body))
    for name, inside in _types(source.tokens):
        mentions.setdefault(name, set()).update(inside)
    waiting = set(_SYNCHRONISING) | {"volatile", "__shared__"}
    if "cooperative_groups" in source.text:
        waiting |= _GROUP_WORDS
    users: dict[str, list[str]] = {}
    for name, inside in mentions.items():
        for word in inside:
            users.setdefault(word, []).append(name)
    reached = list(waiting)
    while reached:
        more = {name for word in reached for name in users.get(word, ())} - waiting
        waiting |= more
        reached = list(more)
    kernels = {region.name for region in regions if region.kind == "kernel"}
    # A functor or lambda that waits can reach any kernel as a template argument.
    if "operator" in waiting or "lambda" in waiting:
        return kernels
    return {name for name in kernels if name in waiting}


def _types(tokens: Sequence[Token]) -> Iterable[tuple[str, set[str]]]:
    """Names of the types defined, each with the words in its body."""
    for i, token in enumerate(tokens):
        if token.text not in ("struct", "class", "union") or i + 1 >= len(tokens):
            continue
        j, name = i + 1, ""
        while j < len(tokens) and tokens[j].text not in ("{", ";", "(", ")", ">", ","):
            if tokens[j].kind == "identifier" and not name and tokens[j].text not in ("__align__", "alignas"):
                name = tokens[j].text
            j += max(tokens[j].reach, 0) + 1 if tokens[j].text == "<" else 1
        if name and j < len(tokens) and tokens[j].text == "{":
            yield name, {t.text for t in tokens[j : j + tokens[j].reach] if t.kind == "identifier"}
