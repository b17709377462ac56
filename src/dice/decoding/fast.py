"""The forward of decoding on a GPU: fused weights, Triton kernels, one CUDA graph per batch shape.

All rows of a step are flat: token i of the step is row i of every product, whatever its sequence. A tile of rows (a
block of one sequence; 32 tokens of a prompt) attends to its slot of the cache as far as its own block reaches. So open
and finished blocks, and sequences of any length, share one step without padding their keys.

Per step one small array goes to the GPU and one comes back. Weights are not copied: the joined matrices become the
storage of the model's own parameters, so training in place is seen at once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from dice.decoding.kernels import KEYS, best_token, block_attention, store_heads
from dice.decoding.products import product
from dice.decoding.rows import Choose, Ints, StepResult, StepRows
from dice.errors import DiceError
from dice.model.cache import KVCache
from dice.model.transformer import Layer, Transformer, rotary_angles

PREFILL_TILE = 32
"""Prompt tokens of one attention tile."""


@dataclass(frozen=True)
class _FusedLayer:
    qkv: Tensor
    gate_up: Tensor
    layer: Layer


def join_weights(parts: Sequence[Tensor]) -> Tensor:
    """Matrices [n_i, k] one under the other; the parameters become views of the result, so nothing is kept twice."""
    first, storage = parts[0], parts[0].untyped_storage().data_ptr()
    rows, width = sum(part.shape[0] for part in parts), first.shape[1]
    expected = first.storage_offset()
    for part in parts:  # already joined by an earlier call?
        if part.untyped_storage().data_ptr() != storage or part.storage_offset() != expected:
            break
        expected += part.numel()
    else:
        return first.detach().as_strided((rows, width), (width, 1), first.storage_offset())
    joined = torch.cat([part.detach() for part in parts])
    start = 0
    for part in parts:
        part.data = joined[start : start + part.shape[0]]
        start += part.shape[0]
    return joined


class _Shape:
    """Buffers and graph of steps with `open_` open and `done` finished rows of `tokens` tokens."""

    def __init__(self, open_: int, done: int, tokens: int, device: torch.device) -> None:
        self.open, self.done, self.tokens = open_, done, tokens
        rows = open_ + done
        sizes = {
            "ids": rows * tokens,
            "positions": rows * tokens,
            "slots": rows * tokens,
            "tiles": rows * 4,
            "open_tiles": open_ * 4,
            "quota": open_,
            "uniform": open_ * tokens,
        }
        pinned = device.type == "cuda"
        self.host = torch.zeros(sum(sizes.values()), dtype=torch.int32, pin_memory=pinned)
        self.input = torch.zeros_like(self.host, device=device)
        self.output = torch.zeros(3, open_, tokens, dtype=torch.int32, device=device)
        self.host_output = torch.zeros(3, open_, tokens, dtype=torch.int32, pin_memory=pinned)
        self.host_parts: dict[str, np.ndarray] = {}
        self.parts: dict[str, Tensor] = {}
        start = 0
        for name, size in sizes.items():
            self.host_parts[name] = self.host[start : start + size].numpy()
            self.parts[name] = self.input[start : start + size]
            start += size
        self.graph: torch.cuda.CUDAGraph | None = None


class FastForward:
    """`dice.decoding.rows.Forward` for 16-bit models on a GPU."""

    def __init__(self, model: Transformer, cache: KVCache, choose: Choose, block_size: int) -> None:
        config, device = model.config, cache.key.device
        interpreted = os.environ.get("TRITON_INTERPRET") == "1"  # Triton's own switch: kernels run in Python, for tests
        if device.type != "cuda" and not interpreted:
            raise DiceError("the fast engine needs a GPU; use engine 'plain'.")
        if device.type == "cuda" and model.dtype == torch.float32:
            raise DiceError("the fast engine needs 16-bit weights; set dtype to bfloat16 or use engine 'plain'.")
        if config.head_dim & (config.head_dim - 1) or config.head_dim < 16:
            raise DiceError(f"the fast engine needs a head_dim that is a power of 2 from 16; it is {config.head_dim}.")
        self.model, self.cache, self.choose, self.block_size = model, cache, choose, block_size
        self.layers = []
        for layer in model.model.layers:
            assert isinstance(layer, Layer)
            attention, mlp = layer.self_attn, layer.mlp
            qkv = join_weights([attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight])
            self.layers.append(_FusedLayer(qkv, join_weights([mlp.gate_proj.weight, mlp.up_proj.weight]), layer))
        cos, sin = rotary_angles(torch.arange(cache.max_length, device=device), config)
        half = config.head_dim // 2
        self.cos, self.sin = cos[:, :half].contiguous(), sin[:, :half].contiguous()
        self.processors = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
        self._shapes: dict[tuple[int, int], _Shape] = {}
        self._pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None

    @torch.no_grad()
    def prefill(self, prompts: Sequence[tuple[int, Ints]]) -> None:
        """Flat over all prompts; not a graph, since its products are long."""
        ids = np.concatenate([ids for _, ids in prompts])
        positions = np.concatenate([np.arange(len(ids)) for _, ids in prompts])
        slots = np.concatenate([np.full(len(ids), slot) for slot, ids in prompts])
        tiles, first = [], 0
        for slot, prompt in prompts:
            for start in range(0, len(prompt), PREFILL_TILE):
                tiles.append((slot, start, first + start, min(PREFILL_TILE, len(prompt) - start)))
            first += len(prompt)
        device = self.cache.key.device
        flat = torch.from_numpy(np.stack((ids, positions, slots)).astype(np.int32)).to(device)
        self._body(
            flat[0], flat[1], flat[2], torch.tensor(tiles, dtype=torch.int32, device=device), tile_tokens=PREFILL_TILE
        )

    @torch.no_grad()
    def step(self, rows: StepRows) -> StepResult:
        """One graph replay between two small copies."""
        shape = self._shape(len(rows.ids), len(rows.done_ids), rows.ids.shape[1])
        self._fill(shape, rows)
        shape.input.copy_(shape.host, non_blocking=True)
        if shape.graph is not None:
            shape.graph.replay()
        elif shape.input.is_cuda and not self.choose.synchronises:
            self._capture(shape)
        else:
            self._run(shape)
        shape.host_output.copy_(shape.output, non_blocking=True)
        if shape.input.is_cuda:
            torch.cuda.current_stream().synchronize()
        tokens, accepted, confidence = shape.host_output.numpy()[:, : len(rows.ids)]
        return StepResult(tokens.astype(np.int64), confidence.view(np.float32).copy(), accepted.astype(np.bool_))

    def _shape(self, open_: int, done: int, tokens: int) -> _Shape:
        size = _rounded(open_)
        quarters = [size // 4, size // 2, size] if size >= 4 else [size]
        done_size = next(part for part in quarters if part >= done) if done else 0
        key = (size, done_size)
        if key not in self._shapes:
            self._shapes[key] = _Shape(size, done_size, tokens, self.cache.key.device)
        return self._shapes[key]

    def _fill(self, shape: _Shape, rows: StepRows) -> None:
        n, c, tokens, scrap = len(rows.ids), len(rows.done_ids), shape.tokens, self.cache.scrap
        total = shape.open + shape.done
        slots = np.full(total, scrap)
        starts = np.zeros(total, np.int64)
        counts = np.zeros(total, np.int64)
        for first, size, row_slots, row_starts in (
            (0, n, rows.slots, rows.starts),
            (shape.open, c, rows.done_slots, rows.done_starts),
        ):
            slots[first : first + size] = row_slots
            starts[first : first + size] = row_starts
            counts[first : first + size] = tokens
        parts = shape.host_parts
        ids = parts["ids"].reshape(total, tokens)
        ids[:] = 0
        ids[:n] = rows.ids
        ids[shape.open : shape.open + c] = rows.done_ids
        parts["positions"].reshape(total, tokens)[:] = starts[:, None] + np.arange(tokens)
        parts["slots"].reshape(total, tokens)[:] = slots[:, None]
        tiles = np.stack((slots, starts, np.arange(total) * tokens, counts), 1)
        parts["open_tiles"].reshape(-1, 4)[:] = tiles[: shape.open]
        # tiles of one sequence side by side: the second reads the keys that the first has brought into L2
        parts["tiles"].reshape(-1, 4)[:] = tiles[np.argsort(slots, kind="stable")]
        parts["quota"][:] = 0
        parts["quota"][:n] = rows.quota
        uniform = parts["uniform"].view(np.float32).reshape(shape.open, tokens)
        uniform[:] = 0
        uniform[:n] = rows.uniform

    def _capture(self, shape: _Shape) -> None:
        """Run once (which compiles and gives this step's result), then record."""
        self._run(shape)
        torch.cuda.current_stream().synchronize()
        result = shape.output.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            self._run(shape)
        shape.output.copy_(result)
        shape.graph = graph

    def _run(self, shape: _Shape) -> None:
        parts, tokens = shape.parts, shape.tokens
        hidden = self._body(
            parts["ids"],
            parts["positions"],
            parts["slots"],
            parts["tiles"].view(-1, 4),
            tile_tokens=tokens,
            open_tiles=parts["open_tiles"].view(-1, 4),
            open_rows=shape.open * tokens,
        )
        assert hidden is not None
        eps = self.model.config.rms_norm_eps
        logits = product(hidden, self.model.lm_head.weight, norm=self.model.model.norm.weight, eps=eps)
        ids = parts["ids"][: shape.open * tokens].view(shape.open, tokens)
        quota, uniform = parts["quota"], parts["uniform"].view(torch.float32).view(shape.open, tokens)
        if self.choose.config.sampling.greedy and not self.choose.synchronises:
            token, confidence = (part.view(shape.open, tokens) for part in best_token(logits, self.choose.mask_id))
            accepted = self.choose.accept(confidence, ids, quota)
        else:
            wide = logits.float().view(shape.open, tokens, -1)
            token, confidence, accepted = self.choose(wide, ids, quota, uniform)
        shape.output[0] = token
        shape.output[1] = accepted
        shape.output[2] = confidence.float().contiguous().view(torch.int32)

    def _body(
        self,
        ids: Tensor,
        positions: Tensor,
        slots: Tensor,
        tiles: Tensor,
        *,
        tile_tokens: int,
        open_tiles: Tensor | None = None,
        open_rows: int = 0,
    ) -> Tensor | None:
        """Hidden states [open_rows, hidden] before the last norm; None when only the cache was to be filled.

        In the last layer rows that are not open only leave their keys and values.
        """
        eps = self.model.config.rms_norm_eps
        x = F.embedding(ids, self.model.model.embed_tokens.weight)
        for number, fused in enumerate(self.layers):
            layer, attention = fused.layer, fused.layer.self_attn
            last = number == len(self.layers) - 1
            qkv = product(x, fused.qkv, norm=layer.input_layernorm.weight, eps=eps)
            key_cache, value_cache = self.cache.key[number], self.cache.value[number]
            query = store_heads(
                qkv, key_cache, value_cache, attention.q_norm.weight, attention.k_norm.weight,
                self.cos, self.sin, positions, slots, eps,
            )  # fmt: skip
            if last:
                if open_tiles is None:
                    return None
                query, x, tiles = query[:open_rows], x[:open_rows], open_tiles
            seen = block_attention(
                query,
                key_cache,
                value_cache,
                tiles,
                tile_tokens=tile_tokens,
                block_size=self.block_size,
                splits=self._splits(len(tiles)),
            )
            x = product(seen, attention.o_proj.weight, residual=x)
            gated = product(x, fused.gate_up, norm=layer.post_attention_layernorm.weight, eps=eps, gated=True)
            x = product(gated, layer.mlp.down_proj.weight, residual=x)
        return x

    def _splits(self, tiles: int) -> int:
        """Programs per tile so that every processor has two, as far as there are keys to share."""
        wanted = -(-2 * self.processors // (tiles * self.model.config.num_key_value_heads))
        return max(1, min(wanted, 32, -(-self.cache.max_length // KEYS)))


def _rounded(rows: int) -> int:
    """The batch size whose graph serves `rows`: few shapes, little padding."""
    for size in (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 80, 96, 112, 128):
        if rows <= size:
            return size
    return -(-rows // 32) * 32
