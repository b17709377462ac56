# pyright: reportCallIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false
# pyright: reportMissingImports=false, reportIndexIssue=false
# (the launchers of Triton kernels have no static types)
"""Triton kernels of a decoding forward. Every function takes and returns torch tensors and has a plain equivalent.

Decoding is bound by the bytes of weights at small batches, by products and the bytes of keys and values at large ones, and
by the number of kernels everywhere. So one pass norms, rotates and stores the heads, and attention reads each sequence's
cache exactly as far as it is filled.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from dice.decoding.cuda_kernel import overlap

KEYS = 64
"""Keys per step of the attention loop."""
_STAGES = 2
"""Steps of the attention loop in flight: few, so that shared memory suffices for many programs on one processor."""
MANY_ROWS = 64
"""Rows from which on a program norms and rotates 8 heads instead of 2, since few rows alone make too few programs."""
_GATED = 1024
"""Outputs of one program of `gate`."""
_NORM_WARPS = 8
"""Most warps that share a row of `add_rms_norm`."""
TILE_FIELDS = 5
"""Cache slot, position of the first token, its row, number of tokens, row of the token behind the first `span`."""


def _precision(x: Tensor) -> str:
    return "ieee" if x.dtype == torch.float32 else "tf32"  # 16-bit products ignore it


@triton.jit
def _embed(ids, table, out, size, BLOCK: tl.constexpr, OVERLAP: tl.constexpr):
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()
    row = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = place < size
    token = tl.load(ids + row).to(tl.int64)
    tl.store(out + row * size + place, tl.load(table + token * size + place, mask=mask, other=0.0), mask=mask)


def embed(ids: Tensor, table: Tensor) -> Tensor:
    """Rows [len(ids), size] of a table [vocabulary, size]."""
    out = torch.empty((len(ids), table.shape[1]), dtype=table.dtype, device=table.device)
    _embed[(len(ids), triton.cdiv(table.shape[1], 1024))](
        ids, table, out, table.shape[1], BLOCK=1024, num_warps=4, **overlap(out)
    )
    return out


@triton.jit
def _add_rms_norm(
    x, delta, weight, total, out, size, eps, ADD: tl.constexpr, BLOCK: tl.constexpr, OVERLAP: tl.constexpr
):
    if OVERLAP:
        gdc_launch_dependents()
    row = tl.program_id(0).to(tl.int64) * size
    place = tl.arange(0, BLOCK)
    mask = place < size
    own = tl.load(weight + place, mask=mask, other=0.0).to(tl.float32)
    if OVERLAP:
        gdc_wait()
    value = tl.load(x + row + place, mask=mask, other=0.0)
    if ADD:
        value = (value.to(tl.float32) + tl.load(delta + row + place, mask=mask, other=0.0).to(tl.float32)).to(
            value.dtype
        )
        tl.store(total + row + place, value, mask=mask)
    wide = value.to(tl.float32)
    wide *= tl.rsqrt(tl.sum(wide * wide, 0) / size + eps)
    tl.store(out + row + place, (wide * own).to(out.dtype.element_ty), mask=mask)


def add_rms_norm(x: Tensor, delta: Tensor | None, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(x + delta, its RMS norm), each [rows, size]."""
    rows, size = x.shape
    out = torch.empty_like(x)
    total = torch.empty_like(x) if delta is not None else x
    block = triton.next_power_of_2(size)
    _add_rms_norm[(rows,)](
        x, delta, weight, total, out, size, eps, ADD=delta is not None, BLOCK=block,
        num_warps=min(_NORM_WARPS, max(1, block // 512)), **overlap(x),
    )  # fmt: skip
    return total, out


@triton.jit
def _gate(gate_up, out, size, BLOCK: tl.constexpr, OVERLAP: tl.constexpr):
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()
    row = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = place < size
    gate = tl.load(gate_up + row * 2 * size + place, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * 2 * size + size + place, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * size + place, (gate * tl.sigmoid(gate) * up).to(out.dtype.element_ty), mask=mask)


def gate(gate_up: Tensor) -> Tensor:
    """silu(first half) * second half of [rows, 2 size]."""
    rows, both = gate_up.shape
    out = torch.empty((rows, both // 2), dtype=gate_up.dtype, device=gate_up.device)
    _gate[(rows, triton.cdiv(both // 2, _GATED))](gate_up, out, both // 2, BLOCK=_GATED, num_warps=4, **overlap(out))
    return out


@triton.jit
def _store_heads(
    qkv, query, key_cache, value_cache, q_norm, k_norm, cos, sin, positions, slots, slot_stride, head_stride, eps,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, DIM: tl.constexpr, TOGETHER: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    if OVERLAP:
        gdc_launch_dependents()
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * TOGETHER + tl.arange(0, TOGETHER)
    place = tl.arange(0, DIM // 2)
    there = (head < HEADS + 2 * KV_HEADS)[:, None] & (place < DIM // 2)[None, :]
    is_query = (head < HEADS)[:, None]
    is_value = (head >= HEADS + KV_HEADS)[:, None]
    position = tl.load(positions + row).to(tl.int64)
    offset = tl.load(slots + row).to(tl.int64) * slot_stride + position * DIM
    c = tl.load(cos + position * (DIM // 2) + place)[None, :]
    s = tl.load(sin + position * (DIM // 2) + place)[None, :]
    weight = tl.where(is_query, tl.load(q_norm + place)[None, :], tl.load(k_norm + place)[None, :]).to(tl.float32)
    other = tl.where(
        is_query, tl.load(q_norm + DIM // 2 + place)[None, :], tl.load(k_norm + DIM // 2 + place)[None, :]
    ).to(tl.float32)
    if OVERLAP:  # what was loaded so far is older than the kernel before this one
        gdc_wait()
    source = qkv + (row * (HEADS + 2 * KV_HEADS) + head)[:, None] * DIM + place[None, :]
    first = tl.load(source, mask=there, other=0.0).to(tl.float32)
    second = tl.load(source + DIM // 2, mask=there, other=0.0).to(tl.float32)
    scale = tl.rsqrt((tl.sum(first * first, 1) + tl.sum(second * second, 1)) / DIM + eps)[:, None]
    a, b = first * scale * weight, second * scale * other
    first = tl.where(is_value, first, a * c - b * s).to(query.dtype.element_ty)
    second = tl.where(is_value, second, b * c + a * s).to(query.dtype.element_ty)
    target = query + (row * HEADS + head)[:, None] * DIM + place[None, :]
    tl.store(target, first, mask=there & is_query)
    tl.store(target + DIM // 2, second, mask=there & is_query)
    kv_head = (head - HEADS) % KV_HEADS
    cell = offset + kv_head[:, None] * head_stride + place[None, :]
    is_key = there & (is_query == 0) & (is_value == 0)
    tl.store(key_cache + cell, first, mask=is_key)
    tl.store(key_cache + cell + DIM // 2, second, mask=is_key)
    tl.store(value_cache + cell, first, mask=there & is_value)
    tl.store(value_cache + cell + DIM // 2, second, mask=there & is_value)


def store_heads(
    qkv: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    q_norm: Tensor,
    k_norm: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor,
    slots: Tensor,
    eps: float,
) -> Tensor:
    """Norm and rotate heads; keys and values go to the cache [slots, kv_heads, length, dim], queries are returned.

    qkv [rows, (heads + 2 kv_heads) dim]; cos and sin [length, dim / 2] fp32; positions and slots [rows].
    """
    _, kv_heads, _, dim = key_cache.shape
    heads = qkv.shape[1] // dim - 2 * kv_heads
    query = torch.empty((qkv.shape[0], heads, dim), dtype=qkv.dtype, device=qkv.device)
    together = 8 if qkv.shape[0] >= MANY_ROWS else 2
    _store_heads[(qkv.shape[0], triton.cdiv(heads + 2 * kv_heads, together))](
        qkv, query, key_cache, value_cache, q_norm, k_norm, cos, sin, positions, slots,
        key_cache.stride(0), key_cache.stride(1), eps, HEADS=heads, KV_HEADS=kv_heads, DIM=dim,
        TOGETHER=together, num_warps=together // 2, **overlap(query),
    )  # fmt: skip
    return query


@triton.jit
def _attend(
    query, key_cache, value_cache, out, part, part_lse, tiles, slot_stride, head_stride, total_rows, scale,
    SPLITS: tl.constexpr, BLOCK_SIZE: tl.constexpr, GROUP: tl.constexpr, HEADS: tl.constexpr, DIM: tl.constexpr,
    FIELDS: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, PRECISION: tl.constexpr,
    OVERLAP: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    slot = tl.load(tiles + tile * FIELDS).to(tl.int64)
    start = tl.load(tiles + tile * FIELDS + 1)
    first_row = tl.load(tiles + tile * FIELDS + 2).to(tl.int64)
    count = tl.load(tiles + tile * FIELDS + 3)
    second_row = tl.load(tiles + tile * FIELDS + 4).to(tl.int64)
    last = ((start + count - 1) // BLOCK_SIZE + 1) * BLOCK_SIZE
    span = tl.cdiv(tl.cdiv(last, SPLITS), KEYS) * KEYS
    low = split * span
    high = tl.minimum(low + span, last)
    base = slot * slot_stride + kv_head * head_stride
    if OVERLAP:  # the tiles are older than the kernel before this one
        gdc_wait()
    if count > 0:
        place = tl.arange(0, ROWS)
        token = place // GROUP
        valid = token < count
        row = tl.where(token < SPAN, first_row + token, second_row + token - SPAN)
        target = row * HEADS + kv_head * GROUP + place % GROUP
        dim = tl.arange(0, DIM)
        q = tl.load(query + target[:, None] * DIM + dim[None, :], mask=valid[:, None], other=0.0)
        end = tl.minimum(((start + token) // BLOCK_SIZE + 1) * BLOCK_SIZE, high)
        power = scale * 1.4426950408889634  # of two
        top = tl.full((ROWS,), float("-inf"), tl.float32)
        mass = tl.zeros((ROWS,), tl.float32)
        total = tl.zeros((ROWS, DIM), tl.float32)
        for key_start in range(low, high, KEYS):
            index = key_start + tl.arange(0, KEYS)
            where = base + index[:, None] * DIM + dim[None, :]
            k = tl.load(key_cache + where, mask=(index < high)[:, None], other=0.0)
            score = tl.dot(q, tl.trans(k), input_precision=PRECISION)
            score = tl.where(index[None, :] < end[:, None], score, float("-inf"))
            new_top = tl.maximum(top, tl.max(score, 1))
            safe = tl.where(new_top == float("-inf"), 0.0, new_top) * power
            weight = tl.exp2(score * power - safe[:, None])
            shrink = tl.exp2(top * power - safe)
            mass = mass * shrink + tl.sum(weight, 1)
            v = tl.load(value_cache + where, mask=(index < high)[:, None], other=0.0)
            total = total * shrink[:, None]
            total = tl.dot(weight.to(v.dtype), v, total, input_precision=PRECISION)
            top = new_top
        total = total / tl.where(mass > 0, mass, 1.0)[:, None]
        if SPLITS == 1:
            tl.store(out + target[:, None] * DIM + dim[None, :], total.to(out.dtype.element_ty), mask=valid[:, None])
        else:
            lse = tl.where(mass > 0, top * scale + tl.log(tl.where(mass > 0, mass, 1.0)), float("-inf"))
            there = split * total_rows * HEADS + target
            tl.store(part + there[:, None] * DIM + dim[None, :], total, mask=valid[:, None])
            tl.store(part_lse + there, lse, mask=valid)
    if OVERLAP:
        gdc_launch_dependents()


@triton.jit
def _combine(
    part, part_lse, out, total, SPLITS: tl.constexpr, PADDED: tl.constexpr, DIM: tl.constexpr, OVERLAP: tl.constexpr
):
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()
    head = tl.program_id(0).to(tl.int64)
    split = tl.arange(0, PADDED)
    dim = tl.arange(0, DIM)
    lse = tl.load(part_lse + split * total + head, mask=split < SPLITS, other=float("-inf"))
    weight = tl.exp(lse - tl.max(lse, 0))
    weight = weight / tl.sum(weight, 0)
    where = (split[:, None] * total + head) * DIM + dim[None, :]
    value = tl.load(part + where, mask=(split < SPLITS)[:, None], other=0.0)
    value = tl.where((weight > 0)[:, None], value * weight[:, None], 0.0)
    tl.store(out + head * DIM + dim, tl.sum(value, 0).to(out.dtype.element_ty))


def block_attention(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    tiles: Tensor,
    *,
    tile_tokens: int,
    block_size: int,
    splits: int,
    span: int | None = None,
) -> Tensor:
    """Block-causal attention over cache slots, [rows, heads, dim] -> [rows, heads * dim].

    tiles [n, TILE_FIELDS]: at most `tile_tokens` tokens each (0: the tile is skipped), at consecutive positions; the first
    `span` of them (or all) are in consecutive rows, and so are the others. `splits` programs share the keys of a tile.
    """
    rows, heads, dim = query.shape
    kv_heads = key_cache.shape[1]
    group = heads // kv_heads
    out = torch.empty((rows, heads * dim), dtype=query.dtype, device=query.device)
    part = torch.empty((splits, rows, heads, dim) if splits > 1 else (1,), dtype=torch.float32, device=query.device)
    lse = torch.empty((splits, rows, heads) if splits > 1 else (1,), dtype=torch.float32, device=query.device)
    padded = max(16, triton.next_power_of_2(tile_tokens * group))
    _attend[(tiles.shape[0], kv_heads, splits)](
        query, key_cache, value_cache, out, part, lse, tiles, key_cache.stride(0), key_cache.stride(1), rows, dim**-0.5,
        SPLITS=splits, BLOCK_SIZE=block_size, GROUP=group, HEADS=heads, DIM=dim,
        FIELDS=TILE_FIELDS, SPAN=span or tile_tokens, ROWS=padded, KEYS=KEYS,
        PRECISION=_precision(query), num_warps=8 if padded > 64 else 4, num_stages=_STAGES, **overlap(out),
    )  # fmt: skip
    if splits > 1:
        _combine[(rows * heads,)](
            part,
            lse,
            out,
            rows * heads,
            SPLITS=splits,
            PADDED=triton.next_power_of_2(splits),
            DIM=dim,
            num_warps=1,
            **overlap(out),
        )
    return out


@triton.jit
def _best_token_part(logits, top, index, mass, size, skipped, BLOCK: tl.constexpr, OVERLAP: tl.constexpr):
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()
    row = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(logits + row * size + place, mask=place < size, other=float("-inf")).to(tl.float32)
    value = tl.where(place == skipped, float("-inf"), value)
    best, at = tl.max(value, 0, return_indices=True, return_indices_tie_break_left=True)
    part = row * tl.num_programs(1) + tl.program_id(1)
    tl.store(top + part, best)
    tl.store(index + part, tl.program_id(1) * BLOCK + at)
    tl.store(mass + part, tl.sum(tl.exp(value - tl.where(best == float("-inf"), 0.0, best)), 0))


@triton.jit
def _best_token(top, index, mass, token, confidence, parts, PADDED: tl.constexpr, OVERLAP: tl.constexpr):
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()
    row = tl.program_id(0)
    part = tl.arange(0, PADDED)
    there = part < parts
    value = tl.load(top + row * parts + part, mask=there, other=float("-inf"))
    best, at = tl.max(value, 0, return_indices=True, return_indices_tie_break_left=True)
    total = tl.sum(tl.load(mass + row * parts + part, mask=there, other=0.0) * tl.exp(value - best), 0)
    tl.store(token + row, tl.load(index + row * parts + at).to(tl.int64))
    tl.store(confidence + row, -tl.log(total))


def best_token(logits: Tensor, skipped: int | None) -> tuple[Tensor, Tensor]:
    """(arg-max, its log-probability) of each row of logits [rows, vocab], without the token `skipped`, in one pass."""
    rows, size = logits.shape
    block = 1024 if rows <= 8 else 4096  # enough programs to fill the GPU, each with one block
    parts = triton.cdiv(size, block)
    top = torch.empty((rows, parts), dtype=torch.float32, device=logits.device)
    index = torch.empty((rows, parts), dtype=torch.int32, device=logits.device)
    mass = torch.empty_like(top)
    token = torch.empty(rows, dtype=torch.int64, device=logits.device)
    confidence = torch.empty(rows, dtype=torch.float32, device=logits.device)
    skip = -1 if skipped is None else skipped
    _best_token_part[(rows, parts)](
        logits, top, index, mass, size, skip, BLOCK=block, num_warps=block // 512, **overlap(logits)
    )
    _best_token[(rows,)](
        top, index, mass, token, confidence, parts, PADDED=max(2, triton.next_power_of_2(parts)), num_warps=1,
        **overlap(logits),
    )  # fmt: skip
    return token, confidence
