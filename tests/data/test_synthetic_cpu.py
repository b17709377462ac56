"""Synthetic pairs, sound and flawed, really built, run and judged by the verifier's CPU back end."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice.data.pair import Pair
from dice.data.synthetic import SyntheticConfig, flawed_pair, pairs, with_changes
from dice.jsonl import write_jsonl
from dice.kernels.records.job import Judging
from dice.kernels.records.verdict import Verdict
from dice.kernels.verify import VerifyConfig, verify

SMALL = SyntheticConfig(shapes="small")
STYLES = ("float4", "tiled_coarse", "two_kernels")
FLAWS = ("off_by_one", "wrong_axis", "no_kernel", "kernel_output_unused")


def judged(made: list[Pair], folder: Path) -> dict[str, Verdict]:
    """Verdict of each pair under the strict protocol, by id."""
    write_jsonl(folder / "pairs.jsonl", made)
    config = VerifyConfig(
        candidates=str(folder / "pairs.jsonl"),
        out=str(folder / "verdicts.jsonl"),
        backend="cpu",
        judging=Judging(protocols=("strict",), correctness_trials=2, measure_time=False),
    )
    return {verdict.problem_id: verdict for verdict in verify(config, progress=False)}


def one_of_each_style() -> list[Pair]:
    """The first pair of few kernels that has the style, for each of STYLES."""
    found: dict[str, Pair] = {}
    for pair in pairs(SMALL, 29, 2000):
        for style in pair.origin["styles"]:
            if style in STYLES and style not in found and len(pair.origin["styles"]) <= 2:
                found[style] = pair
                break
        if len(found) == len(STYLES):
            break
    assert set(found) == set(STYLES)
    return list(found.values())


def test_sound_pairs_are_correct_and_flawed_ones_get_what_they_ask_for(tmp_path: Path) -> None:
    tiny = list(pairs(with_changes(SMALL, scale="tiny"), 29, 1))
    flawed = [
        flawed_pair(SMALL, 31, index, flaw).model_copy(update={"id": f"flawed-{flaw}"})
        for index, flaw in enumerate(FLAWS)
    ]
    sound = one_of_each_style() + tiny
    verdicts = judged(sound + flawed, tmp_path)
    wrong = {pair.id: verdicts[pair.id].message for pair in sound if verdicts[pair.id].status != "correct"}
    assert not wrong
    for pair in flawed:
        verdict, expected = verdicts[pair.id], pair.origin["expected"]
        if expected["kind"] == "wrong":
            assert verdict.functional_status in ("wrong_value", "runtime_error"), pair.origin["flaw"]
        else:
            assert verdict.functional_status == "correct", pair.origin["flaw"]
        assert expected["strict"] is None or verdict.status == expected["strict"]
        assert expected["finding"] is None or expected["finding"] in {found.name for found in verdict.deception}


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["nano", "tiny"])
def test_a_random_sample_is_correct(tmp_path: Path, scale: str) -> None:
    made = list(pairs(with_changes(SMALL, scale=scale), 37, 60))
    verdicts = judged(made, tmp_path)
    wrong = {pair.id: verdicts[pair.id].message for pair in made if verdicts[pair.id].functional_status != "correct"}
    assert not wrong
