"""The released decoding loop, slow and plain: one sequence, a growing cache, and a forward of its own for each commit.

Written after the description of SDAR's generate.py: prefill whole blocks; per block up to `steps` forwards that leave
the cache alone, then one that stores the finished block.
"""

from __future__ import annotations

import torch

from dice.decoding.block_diffusion import BlockDiffusionConfig
from dice.decoding.sampling import SamplingConfig, uniforms
from dice.model.transformer import Transformer


class GrowingCache:
    """Keys and values as lists; a call attends to all that is stored and to all of its own tokens."""

    def __init__(self, layers: int, block_size: int) -> None:
        self.key: list[torch.Tensor | None] = [None] * layers
        self.value: list[torch.Tensor | None] = [None] * layers
        self.block_size = block_size
        self.store = False

    def __call__(self, layer, query, key, value):
        past_key, past_value = self.key[layer], self.value[layer]
        if past_key is not None:
            key, value = torch.cat((past_key, key), 2), torch.cat((past_value, value), 2)
        if self.store:
            self.key[layer], self.value[layer] = key, value
        tokens, seen = query.shape[2], key.shape[2]
        row = (torch.arange(seen - tokens, seen) // self.block_size)[:, None]
        mask = torch.arange(seen)[None] // self.block_size <= row
        group = query.shape[1] // key.shape[1]
        scores = query @ key.repeat_interleave(group, 1).transpose(2, 3) / query.shape[-1] ** 0.5
        return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ value.repeat_interleave(group, 1)


def filtered(logits: torch.Tensor, sampling: SamplingConfig) -> torch.Tensor:
    """Temperature, top-k, top-p of one row of logits, by the definition."""
    if sampling.temperature:
        logits = logits / sampling.temperature
    keep = torch.ones_like(logits, dtype=torch.bool)
    if sampling.top_k:
        keep &= logits >= logits.sort(descending=True).values[min(sampling.top_k, len(logits)) - 1]
    logits = logits.masked_fill(~keep, float("-inf"))
    total = 0.0
    for index in logits.sort(descending=True).indices.tolist():
        if total > sampling.top_p:
            keep[index] = False
        total += float(logits.softmax(-1)[index])
    return logits.masked_fill(~keep, float("-inf"))


@torch.no_grad()
def released_scheme(
    model: Transformer,
    config: BlockDiffusionConfig,
    prompt: list[int],
    new_tokens: int,
    *,
    mask_id: int,
    stop_ids: tuple[int, ...],
    seed: int,
) -> tuple[list[int], list[int], int, int]:
    """(answer, denoising step of each token, denoising forwards, commit forwards); the answer ends at a stop token."""
    size = config.block_size
    total = -(-(len(prompt) + new_tokens) // size) * size
    tokens = torch.tensor(prompt + [mask_id] * (total - len(prompt)))
    order = [0] * total
    cache = GrowingCache(model.config.num_hidden_layers, size)

    def forward(start: int, end: int, store: bool) -> torch.Tensor:
        cache.store = store
        return model.logits(model(tokens[None, start:end], torch.arange(start, end), cache))[0]

    first = len(prompt) // size * size
    if first:
        forward(0, first, True)
    step = commits = 0
    for start in range(first, total, size):
        end = start + size
        each, rest = divmod(size, config.denoising_steps)
        for turn in range(config.denoising_steps):
            masked = [p for p in range(start, end) if tokens[p] == mask_id]
            quota = min(each + (turn < rest), len(masked))
            if not masked:
                break
            logits = forward(start, end, False)
            logits[:, mask_id] = float("-inf")
            choice, confidence = {}, {}
            for position in masked:
                row = logits[position - start]
                if config.sampling.temperature == 0 or config.sampling.top_k == 1:
                    choice[position] = int(row.argmax())
                else:
                    mass = filtered(row, config.sampling).softmax(-1).cumsum(-1)
                    numbers = (torch.tensor([value]).numpy() for value in (seed, position, step))
                    number = float(uniforms(*numbers)[0])
                    choice[position] = next(i for i, m in enumerate(mass.tolist()) if m > number * float(mass[-1]))
                scored = filtered(row, config.sampling) if config.compat == "released" else row
                confidence[position] = float(scored.softmax(-1)[choice[position]])
            sure = [p for p in masked if confidence[p] > config.threshold]
            if config.strategy == "static" or len(sure) < quota:
                if config.compat == "released":
                    scores = torch.tensor([confidence.get(p, float("-inf")) for p in range(start, end)])
                    sure = [start + place for place in torch.topk(scores, quota).indices.tolist()]
                else:
                    sure = sorted(masked, key=lambda p: (-confidence[p], p))[:quota]
            step += 1
            for position in sure:
                tokens[position] = choice[position]
                order[position] = step
        forward(start, end, True)
        commits += 1
        if any(int(tokens[p]) in stop_ids for p in range(max(start, len(prompt)), end)):
            break
    answer, steps = tokens[len(prompt) : len(prompt) + new_tokens].tolist(), order[len(prompt) :]
    for place, token in enumerate(answer):
        if token in stop_ids:
            answer = answer[: place + 1]
            break
    return answer, steps[: len(answer)], step, commits
