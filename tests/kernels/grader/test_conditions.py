"""The protocol `robust`: each condition breaks a candidate that passes `paper`, and blames none that is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from execution import NoBuilder, job, program

from dice.errors import DiceError
from dice.kernels.conditions.table import CONDITIONS, chosen
from dice.kernels.grader.conditions import replayable
from dice.kernels.grader.executor import Executor
from dice.kernels.records.job import Judging
from dice.kernels.records.verdict import ConditionResult, Verdict
from dice.kernels.sandbox.fork_server import ForkServer

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8).eval()
        self.table = nn.Embedding(5, 8)

    def forward(self, x, ids, keep):
        y = self.norm(self.linear(x)) + self.table(ids).squeeze(1)
        return y.masked_fill(~keep, 0.25)


def get_inputs():
    return [torch.randn(12, 8), torch.randint(0, 5, (12, 1)), torch.rand(12, 8) < 0.7]


def get_init_inputs():
    return []
"""
RIGHT = PROBLEM.replace("class Model", "class ModelNew")
RETURN = "return y.masked_fill(~keep, 0.25)"
LAYOUTS = {"swapped_layout", "padded_rows"}


def wrong_where(condition: str) -> str:
    """A candidate whose output is off where something is true of its inputs."""
    return RIGHT.replace(RETURN, f"return y.masked_fill(~keep, 0.25) + 0.5 * bool({condition})")


def instead(old: str, new: str) -> str:
    assert old in RIGHT
    return RIGHT.replace(old, new)


REMEMBERED = (
    "(CACHE.setdefault(0, self.linear.weight)"
    " if bool((self.norm.weight == 1).all() and (self.linear.weight < 0).any()) else self.linear.weight)"
)
BROKEN = {
    "other_weights": instead(
        "self.linear(x)", f"torch.nn.functional.linear(x, {REMEMBERED}, self.linear.bias)"
    ).replace("class ModelNew", "CACHE = {}\n\n\nclass ModelNew"),
    "varied_weights": instead(
        "self.norm(self.linear(x))",
        "(self.linear(x) / 1.00001**0.5"
        " if min(self.norm.weight.mean(), self.norm.running_var.mean()) > 0.1 else self.norm(self.linear(x)))",
    ),
    "small_buffers": wrong_where("self.norm.running_var.max() < 0.1"),
    "weights_below_zero": instead(RETURN, f"{RETURN} * (1 + 0.5 * bool(self.linear.weight.max() < -100))"),
    "small": wrong_where("1e-4 < x.abs().max() < 0.1"),
    "large": wrong_where("x.abs().median() > 100 and (x > 0).any() and (x < 0).any()"),
    "negative": wrong_where("(x <= 0).all() and 0.1 < x.abs().max() < 20"),
    "positive": wrong_where("(x >= 0).all() and x.std() > 0.01 and x.max() < 100"),
    "below_zero": wrong_where("(self.linear.weight >= 0).all() and x.max() <= -1000"),
    "above_zero": wrong_where("(self.linear.weight >= 0).all() and x.min() >= 1000"),
    "rising": wrong_where("(x.reshape(-1).diff() >= 0).all() and x.std() > 0.01"),
    "falling": wrong_where("(x.reshape(-1).diff() <= 0).all() and x.std() > 0.01"),
    "zeros": wrong_where("(x == 0).all()"),
    "constant": wrong_where("(x == x[0, 0]).all() and x[0, 0] != 0"),
    "denormal": wrong_where("0 < x.abs().max() < 1e-30"),
    "spread": wrong_where("x.isfinite().all() and x.abs().max() > 20 and x.abs().median() < 50 and (x > 0).any()"),
    "sparse": wrong_where("(x == 0).any() and not (x == x.round()).all() and len(x) == 12"),
    "whole": wrong_where("(x == x.round()).all() and len(x.unique()) > 3"),
    # a kernel that leaves elements out by a factor of 0
    "one_nan": instead(RETURN, "return y.masked_fill(~keep, 0.25) + 0 * torch.where(x.isnan(), x, 0).sum()"),
    "infinities": instead(RETURN, "return y.masked_fill(~keep, 0.25) + 0 * torch.where(x.isinf(), x, 0).abs().sum()"),
    "skewed_ids": wrong_where(
        "len(ids) == 12 and 7 <= (ids == ids.mode(0).values).sum() <= 11 and len(ids.unique()) > 2"
    ),
    "one_id": wrong_where("len(ids) > 1 and (ids == ids[0]).all()"),
    "first_and_last_id": wrong_where("set(ids.unique().tolist()) == {0, 4}"),
    "mask_on": wrong_where("keep.all() and len(keep) == 12"),
    "mask_off": wrong_where("not keep.any()"),
    "one_more": wrong_where("len(x) == 13"),
    "one_less": wrong_where("len(x) == 11"),
    "half": wrong_where("len(x) == 7"),
    "short": wrong_where("len(x) == 4"),
    "few": wrong_where("len(x) == 2"),
    "twice": wrong_where("len(x) == 25"),
    "many": wrong_where("len(x) > 2000"),
    "long_1": wrong_where("len(x) == 1025"),
    "batch_of_one": wrong_where("len(x) == 1"),
    "swapped_layout": wrong_where("x.stride(0) == 1"),
    "padded_rows": wrong_where("x.stride() == (11, 1)"),
}
PROBLEM_OF_ONE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return LINE


def get_inputs():
    return [torch.randn(SHAPE)]


def get_init_inputs():
    return []
"""
PROBLEM_OF_IDS = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4)

    def forward(self, ids):
        return self.table(ids)


def get_inputs():
    return [torch.randint(0, 9, (20,))]


def get_init_inputs():
    return []
"""
ROBUST = Judging(protocols=("paper", "robust"), correctness_trials=1, seed=7)


@pytest.fixture(scope="module")
def executor(fork_server: ForkServer) -> Iterator[Executor]:
    with Executor(fork_server, NoBuilder(), "cpu", judging=ROBUST) as value:
        yield value


def verdicts(executor: Executor, code: str, problem: str = PROBLEM) -> tuple[Verdict, dict[str, ConditionResult]]:
    """The verdict under `robust`, and its conditions by name. Under `paper` the functional status is `correct`."""
    paper, robust = executor.verify(job(code, problem))
    assert (paper.protocol, robust.protocol) == ("paper", "robust")
    assert paper.functional_status == "correct", paper.message
    assert paper.conditions is None
    assert robust.conditions is not None
    return robust, {one.name: one for one in robust.conditions}


def test_a_right_candidate_passes_every_condition_that_the_problem_has(executor: Executor) -> None:
    robust, results = verdicts(executor, RIGHT)
    assert {name: one.outcome for name, one in results.items()} == dict.fromkeys(["drawn", *BROKEN], "right")
    assert (robust.status, robust.functional_status, robust.stage) == ("correct", "correct", "done")
    assert robust.trials == len(BROKEN) + 1
    assert robust.deception == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_condition_finds_what_no_other_finds(executor: Executor, name: str) -> None:
    robust, results = verdicts(executor, BROKEN[name])
    assert {one.name for one in results.values() if one.outcome != "right"} == {name}, results
    found = results[name]
    assert (found.outcome, found.status, found.seed) == ("broken", "wrong_value", 7)
    if name in LAYOUTS:
        assert (found.decides, robust.status) == (False, "correct")
    else:
        assert (robust.status, robust.stage) == ("wrong_value", "compare")
        assert robust.message.startswith(f"{name}: ")
        assert f"judging.seed=7, judging.conditions=[{name}]" in robust.message


def test_a_candidate_that_is_wrong_as_drawn_is_tried_no_further(executor: Executor) -> None:
    _, robust = executor.verify(job(wrong_where("True"), PROBLEM))
    assert [one.name for one in robust.conditions or []] == ["drawn"]
    assert (robust.status, robust.stage) == ("wrong_value", "compare")


def test_an_error_within_the_papers_tolerance_is_an_error(executor: Executor) -> None:
    robust, _ = verdicts(executor, instead(RETURN, f"{RETURN} + 4e-3"))
    assert robust.status == "wrong_value"
    assert robust.message.startswith("drawn: ")


def test_a_size_may_be_refused_and_a_crash_is_no_refusal(executor: Executor) -> None:
    refuses = instead("        y = ", "        if len(x) != 12:\n            raise ValueError('12 rows')\n        y = ")
    robust, results = verdicts(executor, refuses)
    assert results["half"].outcome == results["one_more"].outcome == "refused"
    assert "12 rows" in results["half"].detail
    assert robust.status == "correct"
    dies = instead(
        "        y = ", "        if len(x) == 13:\n            import os\n            os._exit(3)\n        y = "
    )
    robust, results = verdicts(executor, dies)
    assert (results["one_more"].outcome, results["one_more"].status) == ("broken", "runtime_error")
    assert results["half"].outcome == "right"  # another process
    assert robust.status == "runtime_error"


def test_an_exception_over_values_is_a_failure(executor: Executor) -> None:
    raises = instead(
        "        y = ", "        if bool((x == 0).all()):\n            raise ValueError('no zeros')\n        y = "
    )
    robust, results = verdicts(executor, raises)
    assert results["zeros"].outcome == "broken"
    assert robust.status == "runtime_error"


def test_what_the_reference_raises_for_or_leaves_open_blames_nobody(executor: Executor) -> None:
    """A logarithm of what is negative is no number; the reference refuses large inputs and other batches."""
    problem = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        if x.abs().max() > 50:
            raise ValueError("too large")
        return torch.log(x.view(32).view(4, 8))


def get_inputs():
    return [torch.rand(4, 8) + 0.5]


def get_init_inputs():
    return []
"""
    code = problem.replace("class Model", "class ModelNew").replace("torch.log(", "torch.log(1e-9 * (x < 0) + ")
    robust, results = verdicts(executor, code, problem)
    assert results["large"].outcome == "not_accepted"
    assert results["negative"].outcome == "undefined"
    assert "one_more" not in results
    assert not LAYOUTS & set(results)  # .view refuses them
    assert "varied_weights" not in results
    assert robust.status == "correct"


def test_a_size_that_is_taken_by_accident_blames_nobody(executor: Executor) -> None:
    problem = PROBLEM_OF_ONE.replace("self, x", "self, x, y").replace(
        "torch.randn(SHAPE)", "torch.randn(1, 2, 6, 6), y"
    )
    problem = problem.replace("return [", "y = torch.randn(1, 2, 2, 2)\n    return [")
    pool = "nn.functional.max_pool2d(x, 3, 2)"
    code = problem.replace("class Model", "class ModelNew").replace(
        "LINE", f"{pool} + y.reshape(-1)[: {pool}.numel()].view_as({pool})"
    )
    robust, results = verdicts(executor, code, problem.replace("LINE", f"{pool} + y"))
    assert robust.status == "correct", robust.message
    assert results["one_more"].outcome == "right"


def test_weights_have_signs_where_no_input_has_one(executor: Executor) -> None:
    problem = PROBLEM_OF_IDS
    code = problem.replace("class Model", "class ModelNew").replace(
        "self.table(ids)", "self.table(ids) * (1 + bool((self.table.weight >= 0).all()))"
    )
    robust, _ = verdicts(executor, code, problem)
    assert robust.message.startswith("below_zero: ")


def test_the_named_conditions_are_tried_alone(fork_server: ForkServer) -> None:
    judging = Judging(protocols=("robust",), seed=7, conditions=("zeros", "half"))
    with Executor(fork_server, NoBuilder(), "cpu", judging=judging) as executor:
        (robust,) = executor.verify(job(BROKEN["zeros"], PROBLEM))
    assert [(one.name, one.outcome) for one in robust.conditions or []] == [
        ("drawn", "right"), ("zeros", "broken"), ("half", "right"),
    ]  # fmt: skip
    assert robust.protocol == "robust"


def test_it_may_end_at_the_first_condition_that_breaks_a_candidate(fork_server: ForkServer) -> None:
    conditions = ("small", "zeros", "half", "swapped_layout", "order_1")
    code = wrong_where("(x == 0).all() or len(x) == 7 or not x.is_contiguous()")
    found = []
    for first_break in (False, True):
        judging = Judging(protocols=("robust",), seed=7, conditions=conditions, first_break=first_break)
        with Executor(fork_server, NoBuilder(), "cpu", judging=judging) as executor:
            (robust,) = executor.verify(job(code, PROBLEM))
        found.append(robust)
    whole, short = ([one.name for one in robust.conditions or []] for robust in found)
    assert (whole, short) == (["drawn", *conditions[:-1]], ["drawn", "small", "zeros"])
    assert found[0].status == found[1].status == "wrong_value"
    assert found[0].message == found[1].message


def test_a_condition_that_decides_nothing_ends_nothing(fork_server: ForkServer) -> None:
    judging = Judging(protocols=("robust",), seed=7, conditions=("swapped_layout", "padded_rows"), first_break=True)
    with Executor(fork_server, NoBuilder(), "cpu", judging=judging) as executor:
        (robust,) = executor.verify(job(BROKEN["swapped_layout"], PROBLEM))
    assert [(one.name, one.outcome) for one in robust.conditions or []] == [
        ("drawn", "right"), ("swapped_layout", "broken"), ("padded_rows", "right"),
    ]  # fmt: skip
    assert robust.status == "correct"


@pytest.mark.parametrize(("wrong_at", "rows"), [(0, 12), (12, 200)])
def test_large_inputs_are_cut_where_the_candidate_is_right_then(
    fork_server: ForkServer, wrong_at: int, rows: int
) -> None:
    problem = PROBLEM_OF_ONE.replace("LINE", "x").replace("SHAPE", "200, 3000")
    code = PROBLEM_OF_ONE.replace("class Model", "class ModelNew").replace("SHAPE", "200, 3000")
    line = f"x + float(len(x) == {wrong_at}) + float(len(x) == {rows} and bool((x == 0).all()))"
    judging = Judging(protocols=("robust",), seed=7, conditions=("zeros",))
    with Executor(fork_server, NoBuilder(), "cpu", judging=judging) as executor:
        (robust,) = executor.verify(job(code.replace("LINE", line), problem))
    outcomes = {one.name: one.outcome for one in robust.conditions or []}
    assert outcomes == {"drawn": "right", "shorter": "broken" if wrong_at else "right", "zeros": "broken"}


def test_a_condition_that_does_not_exist_is_named() -> None:
    assert [one.name for one in chosen(("zeros",))] == ["drawn", "shorter", "zeros"]
    assert [one.name for one in chosen(())] == list(CONDITIONS)
    with pytest.raises(DiceError, match="'zeroes'"):
        chosen(("zeroes",))


def test_a_seed_replays_and_none_is_secret() -> None:
    assert replayable(3) == replayable(3)
    assert replayable(3) != replayable(4)
    first, again = replayable(None), replayable(None)
    assert first[0] != again[0]
    assert replayable(first[0]) == first


TOPK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.topk(x, 3, dim=1)[1].float() * 2.0


def get_inputs():
    return [torch.randn(6, 40)]


def get_init_inputs():
    return []
"""


def test_which_of_equal_values_comes_first_is_open(executor: Executor) -> None:
    """A right order of its own among equals, told as floating-point numbers."""
    other = TOPK.replace("class Model", "class ModelNew").replace(
        "torch.topk(x, 3, dim=1)[1]",
        "(x.shape[1] - 1 - torch.sort(x.flip(1), dim=1, descending=True, stable=True)[1][:, :3])",
    )
    robust, found = verdicts(executor, other, TOPK)
    assert robust.status == "correct", robust.message
    assert {name for name, one in found.items() if one.outcome == "undefined"} >= {"zeros", "constant", "one_nan"}
    wrong, _ = verdicts(executor, other.replace("* 2.0", "* 2.0 + bool((x < 0).all())"), TOPK)
    assert wrong.status == "wrong_value"


@pytest.mark.parametrize(
    ("forward", "other"), [("(x * x).mean()", "(x * x).mean().item()"), ("torch.complex(x, x).sum() * 0 + 1", "1.0")]
)
def test_a_number_in_the_place_of_a_tensor_is_compared_as_one(
    fork_server: ForkServer, forward: str, other: str
) -> None:
    """NaN and all."""
    judging = Judging(protocols=("robust",), seed=7)
    with Executor(fork_server, NoBuilder(), "cpu", judging=judging) as executor:
        (right,) = executor.verify(job(program("ModelNew", "", other), program("Model", "", forward)))
        (wrong,) = executor.verify(job(program("ModelNew", "", f"1.01 * {other}"), program("Model", "", forward)))
    assert right.status == "correct", right.message
    assert wrong.status == "wrong_value"
