"""Every family against its vendor: logits, and the tokens of the vendor's own loop (recorded: oracles/record.py).

`released` cases are the vendor's loop as it is; in `ours` the mask token was forbidden and ties went to the left.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from vendor_checkpoints import MASK, write_checkpoint

from dice.config import parse_config
from dice.decoding import canvas
from dice.decoding.block_diffusion import BlockDiffusionConfig
from dice.decoding.canvas import CanvasDecoder
from dice.decoding.dream import DreamConfig, DreamSchedule
from dice.decoding.llada import LladaConfig, LladaSchedule
from dice.decoding.requests import Completion, Request
from dice.decoding.samplers import make_decoder
from dice.decoding.window import WindowConfig
from dice.errors import DiceError
from dice.model.attention_masks import DenseAttention, PackedAttention, block_causal_layout
from dice.model.checkpoint import load_model
from dice.model.transformer import Transformer

ORACLES = Path(__file__).parent / "oracles"
CONFIGS = {
    "llada": LladaConfig,
    "dream": DreamConfig,
    "stable_diffcoder": BlockDiffusionConfig,
    "sdar": BlockDiffusionConfig,
    "wedlm": WindowConfig,
}
FAMILIES = sorted(CONFIGS)


@cache
def oracle(name: str) -> dict[str, Any]:
    return json.loads((ORACLES / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Transformer]:
    folder = tmp_path_factory.mktemp("vendors")
    return {name: load_model(write_checkpoint(folder / name, name)) for name in FAMILIES}


def config_of(name: str, case: dict) -> Any:
    values = dict(case["config"])
    if name == "stable_diffcoder":
        values["ends"] = "budget"
    return parse_config(CONFIGS[name], values | {"compat": "none" if case["mode"] == "ours" else "released"}, "test")


def cut(tokens: list[int], ends: list[int]) -> list[int]:
    """Up to the first end token, which stays."""
    return tokens[: next((i + 1 for i, token in enumerate(tokens) if token in ends), len(tokens))]


def answers(name: str, model: Transformer, cases: list[dict], **changes) -> list[Completion]:
    """Ours, for cases of one configuration, together in one batch."""
    longest = max(len(case["prompt"]) + case["new"] for case in cases) + 64
    given = {"mask_id": MASK, "stop_ids": cases[0]["ends"], "max_batch": 3, "max_length": longest} | changes
    decoder = make_decoder(model, config_of(name, cases[0]), **given)
    requests = [Request(tuple(case["prompt"]), case["new"], case["seed"], i) for i, case in enumerate(cases)]
    return sorted(decoder.run(requests), key=lambda completion: completion.request.key)


@pytest.fixture(scope="module")
def alone(models) -> Callable[[str], list[Completion]]:
    """Family -> our answer to each of its cases, which is decoded by itself; made once for the tests that look at it."""
    return cache(lambda name: [answers(name, models[name], [case])[0] for case in oracle(name)["cases"]])


def attention_of(name: str, lengths: list[int]) -> PackedAttention | DenseAttention:
    """The family's attention over texts that lie behind each other: none sees another."""
    if name in ("llada", "dream"):
        return PackedAttention(lengths)
    block = 4 if name in ("stable_diffcoder", "sdar") else 1
    return DenseAttention(torch.block_diag(*(block_causal_layout(length, block).dense() for length in lengths)).bool())


@pytest.mark.parametrize("name", FAMILIES)
@torch.no_grad()
def test_logits_are_the_vendors(models, name):
    """Texts of 1 to 64 tokens, each alone and all in one forward."""
    model, forwards = models[name], oracle(name)["forwards"]
    assert [len(one["ids"]) for one in forwards] == [1, 2, 5, 21, 64]
    for together in ([one] for one in forwards), [forwards]:
        for texts in together:
            lengths = [len(one["ids"]) for one in texts]
            ids = torch.tensor([[token for one in texts for token in one["ids"]]])
            positions = torch.cat([torch.arange(length) for length in lengths])
            logits = model.logits(model(ids, positions, attention_of(name, lengths)))[0].split(lengths)
            for one, found in zip(texts, logits, strict=True):
                places = [0, len(found) // 2, len(found) - 1]
                torch.testing.assert_close(found[places, :6], torch.tensor(one["logits"]), atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_tokens_are_the_vendors(alone, name):
    wrong = []
    for case, found in zip(oracle(name)["cases"], alone(name), strict=True):
        released_canvas = name == "llada" and case["mode"] == "released"  # the vendor's answer runs on behind its end
        expected = case["tokens"] if released_canvas else cut(case["tokens"], case["ends"])
        if list(found.ids) != expected:
            wrong.append((case, list(found.ids)))
    assert not wrong, f"{len(wrong)} of {len(oracle(name)['cases'])}, the first: {wrong[0]}"


@pytest.mark.parametrize("name", ["llada", "dream", "wedlm"])
def test_a_batch_gives_the_tokens_of_the_vendors_batch(models, name):
    """Two to four prompts of unequal lengths: the vendor's loop had them in one batch, padded on the left; ours does not pad.

    SDAR's and Stable-DiffCoder's loops take one row."""
    batches: dict[tuple, list[dict]] = {}
    for case in oracle(name)["cases"]:
        if "batch" in case:
            batches.setdefault((case["batch"], tuple(case["ends"])), []).append(case)
    assert {len(cases) for cases in batches.values()} == {2, 3, 4}
    for cases in batches.values():
        assert len({len(case["prompt"]) for case in cases}) == len(cases)
        whole = name == "llada" and cases[0]["mode"] == "released"
        expected = [case["tokens"] if whole else cut(case["tokens"], case["ends"]) for case in cases]
        found = answers(name, models[name], cases, max_batch=len(cases))
        assert [list(one.ids) for one in found] == expected, cases[0]["config"]


@pytest.mark.parametrize("name", FAMILIES)
def test_prompts_of_all_lengths_side_by_side_give_the_vendors_tokens(models, name):
    """Greedy and sampled; the vendor decodes each alone, ours two or three at a time, with slots that are used again."""
    groups: dict[int, list[dict]] = {}
    for case in oracle(name)["cases"]:
        if "group" in case and (name in ("llada", "dream") or not case["ends"]):
            groups.setdefault(case["group"], []).append(case | {"ends": []})
    assert len(groups) >= 3
    for cases in groups.values():
        assert len({len(case["prompt"]) for case in cases}) == 4
        for max_batch in (2, 3):
            found = answers(name, models[name], cases, max_batch=max_batch)
            assert [list(one.ids) for one in found] == [case["tokens"] for case in cases], cases[0]["config"]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_batch_gives_what_each_answer_alone_gives(models, name):
    """Prompts of all lengths together: nothing is padded in a way that a token sees."""
    groups: dict[str, list[dict]] = {}
    for case in oracle(name)["cases"]:
        groups.setdefault(json.dumps([case["config"], case["mode"]]), []).append(case | {"ends": []})
    alike = max(groups.values(), key=len)
    prompts = [case["prompt"] for case in oracle(name)["cases"][:: max(1, len(oracle(name)["cases"]) // 7)]]
    cases = [alike[0] | {"prompt": prompt, "seed": seed} for seed, prompt in enumerate(prompts)]
    together = answers(name, models[name], cases)
    assert len({len(prompt) for prompt in prompts}) > 2
    for case, found in zip(cases, together, strict=True):
        (alone,) = answers(name, models[name], [case])
        assert (found.ids, found.step_map, found.n_forwards) == (alone.ids, alone.step_map, alone.n_forwards)


@pytest.mark.parametrize(("name", "schedule"), [("llada", LladaSchedule), ("dream", DreamSchedule)])
def test_the_early_stop_changes_no_token(models, alone, name, schedule):
    """A decoder stops early unless it is told not to."""
    saved = 0
    for case, found in zip(oracle(name)["cases"], alone(name), strict=True):
        if case["mode"] == "released" and name == "llada":
            continue
        given = {"mask_id": MASK, "stop_ids": case["ends"], "max_batch": 1, "max_length": 96}
        request = Request(tuple(case["prompt"]), case["new"], case["seed"])
        decoder = CanvasDecoder(models[name], schedule(config_of(name, case)), **given, early_stop=False)
        whole = next(decoder.run([request]))
        assert list(whole.trace.ids) == case["tokens"]
        reason = "stop" if {*case["ends"]} & {*case["tokens"]} else "length"
        assert (found.ids, found.step_map, found.finish_reason) == (whole.ids, whole.step_map, reason)
        assert found.n_forwards <= whole.n_forwards == max(whole.trace.step_map)
        saved += whole.n_forwards - found.n_forwards
    assert saved > 20


@pytest.mark.parametrize(("name", "shift"), [("llada", 0), ("dream", 1)])
@torch.no_grad()
def test_a_canvas_says_how_sure_the_model_was(models, name, shift):
    """log p of each token, by a forward over the canvas as it was before its step; Dream reads the position before."""
    case = next(case for case in oracle(name)["cases"] if case["mode"] == "ours")
    (found,) = answers(name, models[name], [case | {"ends": []}])
    prompt, ids, steps = torch.tensor(case["prompt"]), torch.tensor(found.ids), torch.tensor(found.step_map)
    places = torch.arange(len(prompt), len(prompt) + len(ids))
    expected = torch.zeros(len(ids))
    for step in range(1, found.n_forwards + 1):
        seen = torch.cat((prompt, ids.where(steps < step, torch.tensor(MASK))))
        hidden = models[name](seen[None], torch.arange(len(seen))[None], PackedAttention([len(seen)]))
        logits = models[name].logits(hidden)[0, places - shift]
        logits[:, MASK] = float("-inf")
        known = logits.log_softmax(-1).gather(1, ids[:, None])[:, 0]
        expected[steps == step] = known[steps == step]
    torch.testing.assert_close(torch.tensor(found.log_confidence), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["llada", "dream"])
def test_a_canvas_that_is_chosen_in_parts_is_the_same(models, name, monkeypatch):
    """Logits of few masks at a time, and a canvas that is just as long as was planned."""
    case = next(case for case in oracle(name)["cases"] if case["mode"] == "ours" and case["config"] != {})
    (whole,) = answers(name, models[name], [case])
    monkeypatch.setattr(canvas, "CANVAS_LOGITS", 3)
    (parts,) = answers(name, models[name], [case], max_length=len(case["prompt"]) + case["new"])
    assert (parts.ids, parts.step_map, parts.n_forwards) == (whole.ids, whole.step_map, whole.n_forwards)
    assert parts.log_confidence == pytest.approx(whole.log_confidence, abs=1e-5)


def test_the_forwards_of_the_window_are_the_vendors_but_for_the_last(alone):
    """The vendor runs a forward more in which it only finds out that the answer has ended; the prompt's is not counted."""
    for case, found in zip(oracle("wedlm")["cases"], alone("wedlm"), strict=True):
        assert found.n_forwards - 1 == case["forwards"] - 1


@pytest.mark.parametrize("name", FAMILIES)
def test_an_end_token_in_the_prompt_ends_nothing(models, name):
    case = oracle(name)["cases"][0] | {"ends": []}
    plain = answers(name, models[name], [case])[0]
    unused = next(token for token in range(50) if token not in plain.ids and token not in case["prompt"])
    ended = case | {"prompt": [*case["prompt"][:-1], unused]}
    with_end = answers(name, models[name], [ended], stop_ids=(unused,))[0]
    without = answers(name, models[name], [ended], stop_ids=())[0]
    assert with_end.ids == without.ids[: len(with_end.ids)]
    assert len(with_end.ids) == len(without.ids) or with_end.ids[-1] == unused


@pytest.mark.parametrize("name", FAMILIES)
def test_requests_that_cannot_be_decoded_are_refused(models, name):
    given: dict[str, Any] = {"mask_id": MASK, "stop_ids": (), "max_batch": 1, "max_length": 60}
    case = oracle(name)["cases"][0]
    decoder = make_decoder(models[name], config_of(name, case), **given)
    for request, sentence in (
        (Request((1, MASK), 8), "mask token"),
        (Request((), 8), "empty prompt"),
        (Request((1,), 0), "at least 1"),
        (Request((1, 104), 8), "vocabulary of 104"),
        (Request(tuple(range(40)), 24), "positions"),
    ):
        with pytest.raises(DiceError, match=sentence):
            list(decoder.run([request]))
    with pytest.raises(DiceError, match="mask token"):
        make_decoder(models[name], config_of(name, case), **dict(given, mask_id=None))
    with pytest.raises(DiceError, match="outside the model's vocabulary"):
        make_decoder(models[name], config_of(name, case), **dict(given, mask_id=104))
