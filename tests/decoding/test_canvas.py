"""What a canvas counts, keeps and refuses, beside the tokens that tests/decoding/test_vendors.py compares."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_models import make_config, make_model

from dice.decoding.canvas import CanvasDecoder, _Canvas
from dice.decoding.llada import LladaConfig, LladaSchedule
from dice.decoding.requests import Request
from dice.decoding.sampling import SamplingConfig
from dice.errors import DiceError

MASK = 96


def decoder_of(stop_ids: tuple[int, ...] = (), max_batch: int = 1, **config) -> CanvasDecoder:
    model = make_model(make_config(model_type="llada", qk_norm=False))
    schedule = LladaSchedule(LladaConfig(block_size=4, sampling=SamplingConfig(temperature=1.0), **config))
    return CanvasDecoder(model, schedule, mask_id=MASK, stop_ids=stop_ids, max_batch=max_batch, max_length=40)


@pytest.mark.parametrize(
    ("answer", "final"),
    [
        ([1, 2, 5, MASK, 5, MASK], True),  # no later step changes what stands before the first end
        ([1, MASK, 5, 3, 5, 3], False),
        ([1, 2, 3, 4, 6, 7], False),
        ([5, MASK, MASK, MASK, MASK, MASK], True),
    ],
)
def test_an_answer_is_final_where_no_mask_is_left_before_its_first_end(answer, final):
    schedule = LladaSchedule(LladaConfig(block_size=6))
    canvas = _Canvas(Request((7, 5), 6), schedule.plan(6, 0, 2), MASK)
    canvas.answer[:] = answer
    assert canvas.is_final(np.array([5])) is final


def test_steps_are_the_forwards_of_the_batch():
    alone = decoder_of()
    (found,) = alone.run([Request((1, 2), 8)])
    assert (alone.steps, found.n_forwards) == (8, 8)
    both = decoder_of(max_batch=2)
    assert [one.n_forwards for one in both.run([Request((1, 2), 8), Request((3,), 4)])] == [4, 8]
    assert both.steps == 8


def test_a_mask_that_no_step_has_filled_has_the_step_0_and_no_confidence():
    """An answer that ends in its first block leaves the others as they are."""
    (whole,) = decoder_of().run([Request((1, 2), 16, 3)])
    end = next(token for token in whole.ids[:4] if whole.ids.index(token) < 4)
    (found,) = decoder_of((end,)).run([Request((1, 2), 16, 3)])
    left = [token == MASK for token in found.trace.ids]
    assert any(left)
    assert [step == 0 for step in found.trace.step_map] == left
    assert [share == 0 for share in found.trace.log_confidence] == left, "nobody was sure of a mask"


def test_an_answer_that_the_schedule_cannot_fill_is_refused_before_it_is_decoded():
    with pytest.raises(DiceError, match=r"6 is no multiple of llada\.block_size 4"):
        decoder_of().check(Request((1, 2), 6))
    with pytest.raises(DiceError, match=r"llada\.steps 3 is no multiple of the answer's 2 blocks"):
        decoder_of(steps=3).check(Request((1, 2), 8))
