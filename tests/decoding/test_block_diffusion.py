"""Block diffusion against the released five-forwards scheme, token for token and step for step."""

from __future__ import annotations

import itertools

import pytest
import torch
from released_scheme import released_scheme
from tiny_models import make_config, make_model

from dice.decoding.autoregressive import AutoregressiveConfig, ChooseNext
from dice.decoding.block_diffusion import BlockDiffusionConfig, ChooseMasks
from dice.decoding.decoder import Decoder, Request
from dice.decoding.sampling import SamplingConfig
from dice.errors import DiceError

MASK = 96
STOPS = (5, 17)


@pytest.fixture(scope="module")
def model():
    return make_model(make_config(num_hidden_layers=2))


def prompts(count: int) -> list[tuple[int, ...]]:
    generator = torch.Generator().manual_seed(3)
    return [tuple(torch.randint(0, 96, (3 + 5 * i % 13,), generator=generator).tolist()) for i in range(count)]


def compare(model, config: BlockDiffusionConfig, *, stops=(), new=13, count=5, max_batch=3, asked=None) -> list:
    decoder = Decoder(model, config, mask_id=MASK, stop_ids=stops, max_batch=max_batch, max_length=48)
    requests = [Request(prompt, new + i, seed=100 + i, key=i) for i, prompt in enumerate(asked or prompts(count))]
    done = sorted(decoder.run(requests), key=lambda completion: completion.request.key)
    assert [completion.request for completion in done] == requests
    for completion in done:
        request = completion.request
        answer, order, denoising, commits = released_scheme(
            model,
            config,
            list(request.prompt),
            request.max_new_tokens,
            mask_id=MASK,
            stop_ids=stops,
            seed=request.seed,
        )
        assert completion.ids == tuple(answer)
        assert completion.step_map == tuple(order)
        prefill = int(len(request.prompt) >= config.block_size)
        assert completion.n_forwards == denoising + prefill  # the commits, `commits` of them, cost nothing
        assert commits >= 1
        assert completion.finish_reason == ("stop" if answer[-1] in stops else "length")
    return done


@pytest.mark.parametrize(
    ("strategy", "block", "steps"),
    [
        (strategy, block, steps)
        for strategy, block in itertools.product(("static", "dynamic"), (1, 2, 3, 4, 8))
        for steps in sorted({1, 2, block, block - 1 or 1, block + 2})
    ],
)
def test_greedy_grid(model, strategy, block, steps):
    compare(model, BlockDiffusionConfig(strategy=strategy, block_size=block, denoising_steps=steps, threshold=0.15))


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.3, 1.0])
def test_dynamic_thresholds(model, threshold):
    config = BlockDiffusionConfig(strategy="dynamic", block_size=4, denoising_steps=4, threshold=threshold)
    done = compare(model, config)
    forwards = sum(completion.n_forwards for completion in done)
    static = sum(c.n_forwards for c in compare(model, BlockDiffusionConfig(block_size=4)))
    assert forwards < static if threshold < 0.1 else forwards <= static
    if threshold == 1:
        assert forwards == static


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingConfig(temperature=1.0),
        SamplingConfig(temperature=0.7),
        SamplingConfig(temperature=1.0, top_k=5),
        SamplingConfig(temperature=1.3, top_p=0.6),
        SamplingConfig(temperature=0.9, top_k=8, top_p=0.9),
    ],
)
@pytest.mark.parametrize("compat", ["none", "released"])
def test_sampling_grid(model, sampling, compat):
    config = BlockDiffusionConfig(strategy="dynamic", threshold=0.2, sampling=sampling, compat=compat)
    compare(model, config)


@pytest.mark.parametrize("strategy", ["static", "dynamic"])
def test_stop_tokens(model, strategy):
    config = BlockDiffusionConfig(strategy=strategy, threshold=0.1, sampling=SamplingConfig(temperature=2.0))
    done = compare(model, config, stops=(5, 6, 7), new=4, count=8)
    assert {completion.finish_reason for completion in done} == {"stop", "length"}


def test_a_stop_token_in_the_prompt_ends_nothing(model):
    """Where the prompt's end opens the first block (1 to 3 tokens of it), where it fills blocks, and in both."""
    asked = [(90,), (1, 2, 90), (90, 6, 7, 90), (1, 90, 2, 3, 4, 91), (9, 8, 7, 6, 90, 91, 90)]
    done = compare(model, BlockDiffusionConfig(), stops=(90, 91), asked=asked)
    assert min(len(completion.ids) for completion in done) > 4


def accepted(config: BlockDiffusionConfig, shares: list[float], *, quota=1, known=()) -> list[int]:
    """Places that are filled in a block with these confidences; `known` places hold a token already."""
    ids = torch.tensor([[7 if place in known else MASK for place in range(len(shares))]])
    confidence = torch.tensor([shares]).log()
    assert torch.equal(confidence.exp(), torch.tensor([shares])), "numbers that survive exp(log) exactly"
    return ChooseMasks(config, MASK).accept(confidence, ids, torch.tensor([quota]))[0].nonzero()[:, 0].tolist()


@pytest.mark.parametrize(
    ("shares", "places"),
    [
        ([0.25, 0.5, 0.5, 0.5], [1]),  # none exceeds 0.5: the most confident, and of these the left one
        ([0.25, 0.5, 1.0, 0.5], [2]),
        ([0.25, 1.0, 0.5, 1.0], [1, 3]),
    ],
)
def test_a_confidence_at_the_threshold_is_not_above_it(shares, places):
    config = BlockDiffusionConfig(strategy="dynamic", threshold=0.5)
    assert accepted(config, shares) == places


@pytest.mark.parametrize(
    ("quota", "known", "places"), [(1, (), [0]), (2, (), [0, 1]), (1, (0, 1), [2]), (3, (1,), [0, 2, 3])]
)
@pytest.mark.parametrize("strategy", ["static", "dynamic"])
def test_of_equal_confidences_the_left_ones_are_taken(strategy, quota, known, places):
    config = BlockDiffusionConfig(strategy=strategy, threshold=0.5)
    assert accepted(config, [0.5] * 4, quota=quota, known=known) == places


def test_released_ties(model):
    """top_k 1 makes every confidence 1 in the released script; then torch.topk's order of ties decides."""
    released = BlockDiffusionConfig(sampling=SamplingConfig(temperature=1.0, top_k=1), compat="released")
    ours = BlockDiffusionConfig(sampling=SamplingConfig(temperature=1.0, top_k=1))
    assert [c.step_map for c in compare(model, released)] != [c.step_map for c in compare(model, ours)]
    all_at_once = BlockDiffusionConfig(
        strategy="dynamic", sampling=SamplingConfig(temperature=1.0, top_k=1), compat="released", threshold=0.99
    )
    for completion in compare(model, all_at_once):
        assert len(set(completion.step_map)) == -(-(len(completion.request.prompt) % 4 + len(completion.ids)) // 4)


def test_tokens_do_not_depend_on_the_batch(model):
    config = BlockDiffusionConfig(strategy="dynamic", threshold=0.2, sampling=SamplingConfig(temperature=1.0))
    found = [
        {c.request.key: (c.ids, c.step_map) for c in compare(model, config, max_batch=max_batch)}
        for max_batch in (1, 2, 5)
    ]
    assert found[0] == found[1] == found[2]


def test_seeds_matter_and_repeat(model):
    config = BlockDiffusionConfig(sampling=SamplingConfig(temperature=1.0))
    decoder = Decoder(model, config, mask_id=MASK, stop_ids=(), max_batch=4, max_length=48)
    requests = [Request((1, 2, 3), 16, seed=seed, key=i) for i, seed in enumerate((7, 8, 7))]
    ids = {c.request.key: c.ids for c in decoder.run(requests)}
    assert ids[0] == ids[2] != ids[1]


def test_confidence_is_of_the_whole_distribution(model):
    config = BlockDiffusionConfig(sampling=SamplingConfig(temperature=1.0, top_k=1))
    decoder = Decoder(model, config, mask_id=MASK, stop_ids=(), max_batch=1, max_length=32)
    (completion,) = decoder.run([Request((1, 2, 3), 8)])
    assert all(-10 < value < -1e-3 for value in completion.log_confidence)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request((), 4), "empty prompt"),
        (Request((1, MASK), 4), "holds the mask token 96"),
        (Request((1, 97), 4), "outside the model's vocabulary of 97"),
        (Request((1,) * 20, 13), "20 tokens and 13 new ones need 36 positions, and the cache has 32"),
        (Request((1,), 0), "at least 1"),
    ],
)
def test_impossible_requests(model, request_, message):
    decoder = Decoder(model, BlockDiffusionConfig(), mask_id=MASK, stop_ids=(), max_batch=1, max_length=32)
    with pytest.raises(DiceError, match=message):
        list(decoder.run([request_]))


def test_the_mask_token_is_never_written(model):
    loud = make_model(make_config(num_hidden_layers=2))
    with torch.no_grad():
        loud.lm_head.weight[MASK] = loud.lm_head.weight.abs().sum(0) * 5
    decoder = Decoder(loud, BlockDiffusionConfig(), mask_id=MASK, stop_ids=(), max_batch=2, max_length=32)
    for completion in decoder.run([Request(p, 9) for p in prompts(3)]):
        assert MASK not in completion.ids
        assert len(completion.ids) == 9


@pytest.mark.parametrize(
    ("block", "steps", "quotas"),
    [(4, 4, (1, 1, 1, 1)), (4, 3, (2, 1, 1)), (8, 3, (3, 3, 2)), (4, 1, (4,)), (2, 5, (1, 1))],
)
def test_a_block_is_spread_over_its_steps_and_no_step_is_empty(block, steps, quotas):
    assert BlockDiffusionConfig(block_size=block, denoising_steps=steps).quotas == quotas


def test_steps_are_the_forwards_of_the_batch_without_prefill(model):
    decoder = Decoder(model, BlockDiffusionConfig(), mask_id=MASK, stop_ids=(), max_batch=2, max_length=48)
    assert decoder.steps == 0
    short, long = decoder.run([Request((1, 2, 3, 4), 8), Request((1, 2, 3, 4), 16)])
    assert (short.n_forwards, long.n_forwards) == (9, 17), "with the prompt's"
    assert decoder.steps == 16


def test_a_mask_token_with_the_id_0_is_a_mask(model):
    """What stands behind the budget in a partial last block is no mask, whatever id masks have."""
    decoder = Decoder(model, BlockDiffusionConfig(ends="budget"), mask_id=0, stop_ids=(), max_batch=1, max_length=48)
    (found,) = decoder.run([Request((1, 2, 3, 4, 5), 6)])
    assert len(found.ids) == 6
    assert 0 not in found.ids
    assert found.n_forwards <= 6 + 1


@pytest.mark.parametrize(
    "config",
    [
        BlockDiffusionConfig(),
        BlockDiffusionConfig(denoising_steps=3),
        BlockDiffusionConfig(strategy="dynamic", threshold=2.0, denoising_steps=2),
        AutoregressiveConfig(),
    ],
)
def test_the_rows_of_the_next_step_are_known_before_its_choices(model, config):
    """Where nothing ends early, `ahead` says how many blocks are open and finished in the step that follows."""
    mask = MASK if isinstance(config, BlockDiffusionConfig) else None
    decoder = Decoder(model, config, mask_id=mask, stop_ids=(), max_batch=4, max_length=48)
    foretold, seen, begin, finish = [], [], decoder.forward.begin, decoder.forward.finish

    def recorded_begin(rows):
        seen.append((len(rows.ids), len(rows.done_ids)))
        begin(rows)

    def recorded_finish(ahead):
        foretold.append(ahead)
        return finish(ahead)

    decoder.forward.begin, decoder.forward.finish = recorded_begin, recorded_finish
    assert len(list(decoder.run([Request(prompt, 5 + 4 * i) for i, prompt in enumerate(prompts(4))]))) == 4
    assert foretold == [*seen[1:], (0, 0)]
    assert len(set(seen)) > 3


def test_what_follows_a_threshold_is_not_known_before(model):
    decoder = Decoder(
        model, BlockDiffusionConfig(strategy="dynamic"), mask_id=MASK, stop_ids=(), max_batch=1, max_length=48
    )
    finish = decoder.forward.finish

    def asked(ahead):
        assert ahead is None
        return finish(ahead)

    decoder.forward.finish = asked
    assert len(list(decoder.run([Request((1, 2, 3, 4), 8)]))) == 1


def test_only_the_released_ties_wait_for_the_device():
    """torch.topk of each row's quota cannot be part of a CUDA graph."""
    assert ChooseMasks(BlockDiffusionConfig(compat="none"), MASK).synchronises is False
    assert ChooseMasks(BlockDiffusionConfig(compat="released"), MASK).synchronises is True
    assert ChooseNext(SamplingConfig()).synchronises is False


@pytest.mark.parametrize(
    ("config", "size"),
    [(BlockDiffusionConfig(), 4), (BlockDiffusionConfig(block_size=6), 6), (AutoregressiveConfig(), 1)],
)
def test_the_rule_that_the_device_is_given_has_the_rows_own_size(model, config, size):
    """The engine on a GPU lays out its rows by the rule; the host fills them with what `rows` says."""
    mask = MASK if isinstance(config, BlockDiffusionConfig) else None
    decoder = Decoder(model, config, mask_id=mask, stop_ids=(), max_batch=2, max_length=48)
    begin, seen = decoder.forward.begin, []

    def recorded(rows):
        seen.append((rows.ids.shape[1], rows.quota.max()))
        begin(rows)

    decoder.forward.begin = recorded
    assert len(list(decoder.run([Request((1, 2, 3), 12), Request((4,), 7)]))) == 2
    rule = decoder.algorithm.rule
    assert {width for width, _ in seen} == {rule.block_size} == {size}
    assert {quota for _, quota in seen} == set(rule.quotas)


def test_without_a_mask_token_nothing_can_be_filled(model):
    with pytest.raises(DiceError, match="block diffusion needs the id of the mask token"):
        Decoder(model, BlockDiffusionConfig(), mask_id=None, stop_ids=(), max_batch=1, max_length=48)


def test_prompts_are_run_together_as_long_as_they_take_no_more_than_a_prefill(model, monkeypatch):
    """Exactly as much is not more; a longer prompt is run by itself. The plan of the memory counts on both."""

    def run() -> tuple[list[list[int]], list[tuple[int, ...]]]:
        decoder = Decoder(model, BlockDiffusionConfig(), mask_id=MASK, stop_ids=(), max_batch=6, max_length=28)
        prefill, parts = decoder.forward.prefill, []

        def recorded(prompts):
            parts.append([len(prompt) for _, prompt in prompts])
            prefill(prompts)

        decoder.forward.prefill = recorded
        asked = [Request(tuple(range(length)), 4, key=key) for key, length in enumerate((8, 8, 4, 20, 4, 12))]
        return parts, [one.ids for one in sorted(decoder.run(asked), key=lambda one: one.request.key)]

    at_once, expected = run()
    assert at_once == [[8, 8, 4, 20, 4, 12]]
    monkeypatch.setattr("dice.decoding.decoder.PREFILL_TOKENS", 16)
    parts, found = run()
    assert parts == [[8, 8], [4], [20], [4, 12]]
    assert found == expected
