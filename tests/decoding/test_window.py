"""WeDLM's window on a model that has one distribution at every mask, so that each rule can be worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from tiny_models import make_config, make_model

from dice.decoding.requests import Completion, Request
from dice.decoding.sampling import SamplingConfig
from dice.decoding.window import WindowConfig, WindowDecoder
from dice.errors import DiceError
from dice.model.cache import KVCache

MASK, NEVER = 3, -200.0
GREEDY = SamplingConfig()


def decoder_of(
    shares: list[float], config: WindowConfig, stop_ids: tuple[int, ...] = (), slots: int = 1
) -> WindowDecoder:
    """Every mask has these probabilities of the tokens 0, 1 and 2, whatever stands before it."""
    logits = [math.log(share) if share else NEVER for share in shares]
    model = make_model(make_config(vocab_size=4, model_type="wedlm", num_hidden_layers=1))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(float("embed" in name or "norm" in name))
        model.lm_head.weight.copy_(torch.tensor([*logits, NEVER])[:, None] / model.config.hidden_size)
    return WindowDecoder(model, config, mask_id=MASK, stop_ids=stop_ids, max_batch=slots, max_length=600)


def answer(
    shares: list[float], new: int, config: WindowConfig, seed: int = 0, stop_ids: tuple[int, ...] = ()
) -> Completion:
    decoder = decoder_of(shares, config, stop_ids)
    return next(decoder.run([Request((0,), new, seed)]))


@pytest.mark.parametrize(
    ("sampling", "drawn"),
    [
        # top-k leaves 0.5 and 0.3, of which 0.5 / 0.8 passes 0.6 alone; of all three, 0.5 does not
        ({"temperature": 1.0, "top_k": 2, "top_p": 0.6}, {0}),
        # 0.5 and 0.3 pass 0.75; at a temperature of 50 first, it would take all three
        ({"temperature": 50.0, "top_p": 0.75}, {0, 1}),
        ({"temperature": 50.0}, {0, 1, 2}),
    ],
)
def test_tokens_are_filtered_by_top_k_then_top_p_then_temperature(sampling, drawn):
    found = answer([0.5, 0.3, 0.2], 200, WindowConfig(sampling=SamplingConfig(**sampling), threshold=5.0)).ids
    assert set(found) == drawn
    assert found.count(1) == pytest.approx(200 / len(drawn) if len(drawn) > 1 else 0, abs=25)


def test_a_mask_at_the_threshold_is_not_below_it():
    """The model is sure: the entropy is 0, which is below any threshold but 0."""
    at, above = (WindowConfig(threshold=t, position_penalty=0.0, sampling=GREEDY) for t in (0.0, 1e-3))
    assert answer([1.0, 0.0, 0.0], 6, at).step_map == (1, 2, 3, 4, 5, 6)
    assert answer([1.0, 0.0, 0.0], 6, above).step_map == (1,) * 6


def test_the_penalty_grows_by_the_distance_to_the_first_mask():
    """Entropy 0: masks whose distance times 0.25 is below 0.6 are filled, three in each forward."""
    config = WindowConfig(threshold=0.6, position_penalty=0.25, sampling=GREEDY)
    assert answer([1.0, 0.0, 0.0], 9, config).step_map == (1, 1, 1, 2, 2, 2, 3, 3, 3)


def test_entropy_is_in_nats_and_without_a_threshold_the_leftmost_of_equals_is_filled():
    for threshold, steps in (
        (math.log(2) + 1e-3, (1, 1, 1, 1)),
        (math.log(2) - 1e-3, (1, 2, 3, 4)),
        (None, (1, 2, 3, 4)),
    ):
        config = WindowConfig(threshold=threshold, position_penalty=0.0)
        assert answer([0.5, 0.5, 0.0], 4, config).step_map == steps


def test_a_tokens_confidence_is_its_share_of_the_whole_distribution():
    """Before temperature and filters, each token its own."""
    shares = [0.5, 0.3, 0.2]
    config = WindowConfig(sampling=SamplingConfig(temperature=50.0, top_k=2), threshold=5.0)
    found = answer(shares, 40, config)
    assert set(found.ids) == {0, 1}
    assert found.log_confidence == pytest.approx([math.log(shares[token]) for token in found.ids], abs=1e-5)


def test_the_positions_that_are_planned_are_enough_and_all_needed():
    """A sure model fills a window in each forward, so that the last one reaches two windows behind the known prefix."""
    config = WindowConfig(window=5, threshold=1.0, position_penalty=0.0, sampling=GREEDY)
    decoder = decoder_of([1.0, 0.0, 0.0], config)
    decoder.cache = KVCache(decoder.model.config, 1, config.positions(3, 11), dtype=torch.float32, device="cpu")
    (found,) = decoder.run([Request((0, 1, 2), 11)])
    assert found.step_map == (1,) * 5 + (2,) * 5 + (3,)
    decoder.cache = KVCache(decoder.model.config, 1, config.positions(3, 11) - 1, dtype=torch.float32, device="cpu")
    with pytest.raises(DiceError, match="take 24 positions; the cache has 23"):
        list(decoder.run([Request((0, 1, 2), 11)]))


def test_an_end_token_behind_the_budget_ends_nothing():
    """One forward fills a window of 16; the answers of shorter budgets are its beginnings, whatever follows."""
    config = WindowConfig(sampling=SamplingConfig(temperature=1.0), threshold=5.0)
    beyond = 0
    for seed in range(8):
        whole = answer([0.6, 0.4, 0.0], 16, config, seed).ids
        first = whole.index(1)
        for budget in (1, 2, 3, 5):
            found = answer([0.6, 0.4, 0.0], budget, config, seed, stop_ids=(1,))
            assert found.ids == whole[: min(budget, first + 1)]
            assert found.finish_reason == ("stop" if first < budget else "length")
            beyond += first >= budget
    assert beyond > 8


def test_the_defaults_are_the_vendors():
    """SamplingParams of the vendor's engine, and the temperature of its example."""
    config = WindowConfig()
    assert (config.window, config.threshold, config.position_penalty) == (16, 0.4, 0.02)
    assert config.sampling == SamplingConfig(temperature=0.2)


def test_steps_are_the_forwards_of_the_batch_without_prefill():
    """Answers of 4 and 6 tokens, a token a forward: one after the other 10 forwards, side by side 6."""
    config = WindowConfig(threshold=None, sampling=GREEDY)
    for slots, steps in ((1, 10), (2, 6)):
        decoder = decoder_of([1.0, 0.0, 0.0], config, slots=slots)
        assert decoder.steps == 0
        found = sorted(decoder.run([Request((0,), 4), Request((0, 1), 6)]), key=lambda one: len(one.ids))
        assert [one.n_forwards for one in found] == [5, 7], "with the prompt's"
        assert decoder.steps == steps
