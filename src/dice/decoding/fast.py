"""The forward of decoding on a GPU: fused weights, Triton kernels, one CUDA graph per batch shape.

All rows of a step are flat: token i of the step is row i of every product, whatever its sequence. A tile of rows (a
block of one sequence, or 32 tokens of a prompt) attends to its slot of the cache up to the end of its own block. So open
and finished blocks, and sequences of any length, share one step without padding their keys.

The open rows live on the GPU (`dice.decoding.device_rows`): a step sends one small array to the host and needs nothing
from it, and the next step starts before the host has seen that array. Weights are not copied: the joined matrices become
the storage of the model's own parameters, so decoding sees training in place at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dice.decoding.cluster_attention import cluster_attention, fits
from dice.decoding.device_rows import DeviceRows, RowLayout, to_device
from dice.decoding.kernels import KEYS, TILE_FIELDS, best_token, block_attention, embed, store_heads
from dice.decoding.products import product
from dice.decoding.rows import Choose, Ints, Rule, StepResult, StepRows
from dice.decoding.sequences import Sequences
from dice.errors import DiceError, HarnessError
from dice.model.cache import KVCache
from dice.model.transformer import Layer, Transformer, rotary_angles

ATTENTION_PROGRAMS = 4
"""Most programs per processor when few sequences share their keys among programs."""
PREFILL_TILE = 32
"""Prompt tokens of one attention tile."""
PREFILL_GRAPH_TOKENS = 8192
"""Prompt tokens up to which prefill is a graph: a GPU finishes them before a busy host has launched the kernels."""
_PREFILL_GRAIN = 128
"""Sizes of such graphs are multiples of this many tokens."""


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


@dataclass
class _Shape:
    """Rows and graph of steps of one size."""

    layout: RowLayout
    graph: torch.cuda.CUDAGraph | None = None


@dataclass
class _Prompts:
    """Rows [ids, positions, slots] and tiles for prompts of one total size; a graph once that size has come twice."""

    rows: Tensor
    tiles: Tensor
    compiled: bool = False
    graph: torch.cuda.CUDAGraph | None = None


@dataclass(frozen=True)
class _UnderWay:
    """A running step: its open rows, and where its results arrive."""

    shape: _Shape
    host: Tensor
    arrived: torch.cuda.Event | None


class FastForward:
    """`dice.decoding.rows.Forward` on a GPU."""

    def __init__(
        self, model: Transformer, cache: KVCache, choose: Choose, rule: Rule, stop_ids: tuple[int, ...] = ()
    ) -> None:
        config, device = model.config, cache.key.device
        interpreted = os.environ.get("TRITON_INTERPRET") == "1"  # Triton's own switch: kernels run in Python, for tests
        if device.type != "cuda" and not interpreted:
            raise DiceError("the fast engine needs a GPU; use engine 'plain'.")
        if config.head_dim & (config.head_dim - 1) or config.head_dim < 16:
            raise DiceError(f"the fast engine needs a head_dim that is a power of 2 from 16; it is {config.head_dim}.")
        self.model, self.cache, self.choose, self.block_size = model, cache, choose, rule.block_size
        self.rows = DeviceRows(cache.slots, rule, stop_ids, device)
        self.layers = []
        for layer in model.model.layers:
            assert isinstance(layer, Layer)
            attention, mlp = layer.self_attn, layer.mlp
            qkv = join_weights([attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight])
            self.layers.append(_FusedLayer(qkv, join_weights([mlp.gate_proj.weight, mlp.up_proj.weight]), layer))
        self._weights = self._addresses()
        cos, sin = rotary_angles(torch.arange(cache.max_length, device=device), config)
        half = config.head_dim // 2
        self.cos, self.sin = cos[:, :half].contiguous(), sin[:, :half].contiguous()
        self.processors = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
        self._shapes: dict[tuple[int, int], _Shape] = {}
        self._prompts: dict[int, _Prompts] = {}
        self._pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None
        size = 3 * _rounded(cache.slots) * rule.block_size + 2
        # two, since a step starts while the results of the one before it are on their way
        self._arrivals = torch.zeros(2, size, dtype=torch.int32, pin_memory=device.type == "cuda")
        self._started = 0
        self._under_way: _UnderWay | None = None
        self._open_rows = 0
        self._entered = 0
        """Sequences that are on the device and not in the running step."""

    def clear(self) -> None:
        """Forget all sequences and the running step.

        Raises HarnessError when a weight has moved since the graphs were recorded: they would read the old place.
        """
        if self._addresses() != self._weights:
            raise HarnessError("decoding: the model's weights were moved or replaced; make a new Decoder.")
        self.rows.clear()
        self._under_way, self._entered = None, 0

    def _addresses(self) -> list[int]:
        return [parameter.data_ptr() for parameter in self.model.parameters()]

    def enter(self, sequences: Sequences, slots: Ints) -> None:
        """Add the sequences of these slots to the next step that starts."""
        self.rows.enter(sequences, slots)
        self._entered += len(slots)

    @torch.no_grad()
    def prefill(self, prompts: Sequence[tuple[int, Ints]]) -> None:
        """Flat over all prompts; as a graph when they are short and their padded size came before."""
        ids = np.concatenate([ids for _, ids in prompts])
        positions = np.concatenate([np.arange(len(ids)) for _, ids in prompts])
        slots = np.concatenate([np.full(len(ids), slot) for slot, ids in prompts])
        tiles, first = [], 0
        for slot, prompt in prompts:
            for start in range(0, len(prompt), PREFILL_TILE):
                tiles.append((slot, start, first + start, min(PREFILL_TILE, len(prompt) - start), 0))
            first += len(prompt)
        rows, device = np.stack((ids, positions, slots)).astype(np.int32), self.cache.key.device
        if device.type == "cuda" and len(ids) <= PREFILL_GRAPH_TOKENS:
            self._replay(rows, np.array(tiles, np.int32))
        else:
            self._fill(to_device(rows, device), to_device(np.array(tiles, np.int32), device))

    def _fill(self, rows: Tensor, tiles: Tensor) -> None:
        """Write keys and values of these prompt tokens."""
        self._body(rows[0], rows[1], rows[2], tiles, tile_tokens=PREFILL_TILE)

    def _replay(self, rows: NDArray[np.int32], tiles: NDArray[np.int32]) -> None:
        """`_fill` as a graph; padding goes to the slot behind the last one and has no tile."""
        tokens, device = rows.shape[1], self.cache.key.device
        size = -(-tokens // _PREFILL_GRAIN) * _PREFILL_GRAIN
        if size not in self._prompts:
            most_tiles = size // PREFILL_TILE + self.cache.slots
            kinds = {"dtype": torch.int32, "device": device}
            self._prompts[size] = _Prompts(torch.zeros(3, size, **kinds), torch.zeros(most_tiles, TILE_FIELDS, **kinds))
        prompts = self._prompts[size]
        padded = np.zeros((3, size), np.int32)
        padded[2] = self.cache.scrap
        padded[:, :tokens] = rows
        all_tiles = np.zeros(prompts.tiles.shape, np.int32)
        all_tiles[: len(tiles)] = tiles
        prompts.rows.copy_(to_device(padded, device))
        prompts.tiles.copy_(to_device(all_tiles, device))
        if prompts.compiled and prompts.graph is None:
            prompts.graph = self._recorded(lambda: self._fill(prompts.rows, prompts.tiles))
        if prompts.graph is not None:
            prompts.graph.replay()
        else:
            self._fill(prompts.rows, prompts.tiles)
            prompts.compiled = True

    def begin(self, rows: StepRows) -> None:
        """Start a step over all sequences that have entered."""
        self._under_way = self._start(len(rows.ids), len(rows.done_ids))
        self._open_rows, self._entered = len(rows.ids), 0

    def finish(self, ahead: tuple[int, int] | None) -> tuple[StepResult, int]:
        """Wait for the running step. The next one starts first where `ahead` bounds its rows, else afterwards."""
        step, n, new = self._under_way, self._open_rows, self._entered
        assert step is not None
        self._entered = 0
        following = self._start(ahead[0] + new, ahead[1]) if ahead is not None and ahead[0] + new else None
        if step.arrived is not None:
            step.arrived.synchronize()
        layout = step.shape.layout
        found = step.host[: len(layout.output)].numpy()
        open_, done = found[-2:].tolist()
        if ahead is not None and (open_ > ahead[0] or done > ahead[1]):
            raise HarnessError(f"decoding: {open_} open and {done} done rows follow; at most {ahead} were expected.")
        open_ += new
        results = found[:-2].reshape(3, layout.open, layout.tokens)[:, :n].copy()
        if following is None and open_:
            following = self._start(open_, done)
        self._under_way, self._open_rows = (following, open_) if open_ else (None, 0)
        tokens, accepted, confidence = results
        return StepResult(tokens.astype(np.int64), confidence.view(np.float32), accepted.astype(np.bool_)), open_

    @torch.no_grad()
    def _start(self, open_: int, done: int) -> _UnderWay:
        """Start one step of at most this many rows; its results go to the host."""
        shape = self._shape(open_, done)
        output = shape.layout.output
        host = self._arrivals[self._started % 2]
        self._started += 1
        if shape.graph is not None:
            shape.graph.replay()
        elif output.is_cuda and not self.choose.synchronises:
            self._run(shape)
            shape.graph = self._recorded(lambda: self._run(shape))
        else:
            self._run(shape)
        arrived = None
        if output.is_cuda:
            arrived = torch.cuda.Event()
            arrived.record()
        return _UnderWay(shape, host, arrived)

    def _shape(self, open_: int, done: int) -> _Shape:
        size = _rounded(open_)
        quarters = [size // 4, size // 2, size] if size >= 4 else [size]
        done_size = next(part for part in quarters if part >= done) if done else 0
        key = (size, done_size)
        if key not in self._shapes:
            layout = RowLayout(size, done_size, self.block_size, self.cache.key.device)
            self._shapes[key] = _Shape(layout)
        return self._shapes[key]

    def _recorded(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """A graph of work that has run before, so that it is compiled."""
        torch.cuda.current_stream().synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            work()
        return graph

    def _run(self, shape: _Shape) -> None:
        layout, tokens = shape.layout, shape.layout.tokens
        self.rows.line_up(layout)
        hidden = self._body(
            layout.ids,
            layout.positions,
            layout.slots,
            layout.tiles,
            tile_tokens=2 * tokens if layout.done else tokens,
            open_rows=layout.open * tokens,
        )
        assert hidden is not None
        eps = self.model.config.rms_norm_eps
        logits = product(hidden, self.model.lm_head.weight, norm=self.model.model.norm.weight, eps=eps)
        if self.choose.sampling.greedy and not self.choose.synchronises:
            token, confidence = best_token(logits, self.choose.mask_id)
            self.rows.advance(layout, token, confidence, None)
        else:
            ids = layout.ids[: layout.open * tokens].view(layout.open, tokens)
            wide = logits.float().view(layout.open, tokens, -1)
            token, confidence, accepted = self.choose(wide, ids, layout.quota, self.rows.uniform(layout))
            self.rows.advance(layout, token, confidence.float(), accepted)
        self.rows.deliver(layout, self._arrivals)

    def _body(
        self,
        ids: Tensor,
        positions: Tensor,
        slots: Tensor,
        tiles: Tensor,
        *,
        tile_tokens: int,
        open_rows: int | None = None,
    ) -> Tensor | None:
        """Hidden states [open_rows, hidden] before the last norm; None when only the cache is to be filled.

        In the last layer, rows that are not open only write their keys and values.
        """
        span = self.block_size if open_rows is not None else tile_tokens
        eps = self.model.config.rms_norm_eps
        x = embed(ids, self.model.model.embed_tokens.weight)
        for number, fused in enumerate(self.layers):
            layer, attention = fused.layer, fused.layer.self_attn
            last = number == len(self.layers) - 1
            qkv = product(x, fused.qkv, norm=layer.input_layernorm.weight, eps=eps)
            key_cache, value_cache = self.cache.key[number], self.cache.value[number]
            heads = attention.q_norm.weight, attention.k_norm.weight, self.cos, self.sin
            how = {"tile_tokens": tile_tokens, "block_size": self.block_size, "span": span}
            if open_rows is not None and fits(qkv, key_cache, tiles, tile_tokens):
                seen = cluster_attention(qkv, key_cache, value_cache, *heads, tiles, eps, **how)
            else:
                query = store_heads(qkv, key_cache, value_cache, *heads, positions, slots, eps)
                if last and open_rows is None:
                    return None
                seen = block_attention(query, key_cache, value_cache, tiles, splits=self._splits(len(tiles)), **how)
            if last:
                seen, x = seen[:open_rows], x[:open_rows]
            x = product(seen, attention.o_proj.weight, residual=x)
            gated = product(x, fused.gate_up, norm=layer.post_attention_layernorm.weight, eps=eps, gated=True)
            x = product(gated, layer.mlp.down_proj.weight, residual=x)
        return x

    def _splits(self, tiles: int) -> int:
        """Programs per tile: at most ATTENTION_PROGRAMS per processor, and no more than there are keys to share."""
        wanted = ATTENTION_PROGRAMS * self.processors // (tiles * self.model.config.num_key_value_heads)
        return max(1, min(wanted, 32, -(-self.cache.max_length // KEYS)))


def _rounded(rows: int) -> int:
    """The batch size whose graph serves `rows`: few shapes, little padding."""
    for size in (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 80, 96, 112, 128):
        if rows <= size:
            return size
    return -(-rows // 32) * 32
