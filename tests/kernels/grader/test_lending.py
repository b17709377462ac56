"""What a candidate is lent of the reference's module, and what its verdicts are with it and without it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from execution import NoBuilder, job

from dice.kernels.checks import static_findings
from dice.kernels.grader.executor import Executor, Prebuilder
from dice.kernels.grader.lending import definitions_of, lent_names, runs
from dice.kernels.records.job import Judging
from dice.kernels.records.verdict import Verdict
from dice.kernels.sandbox.fork_server import ForkServer

REFERENCE = """
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

SCALE = 2.0
FACTOR = math.sqrt(SCALE)


def scaled(x):
    return x * FACTOR


class Model(nn.Module):
    def forward(self, x):
        return F.relu(scaled(x))


def get_inputs():
    return [torch.randn(8, 8)]


def get_init_inputs():
    return []
"""
BORROWS = """
import torch


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.clamp(scaled(x), min=0)
"""
OWNS = BORROWS.replace("import torch\n", "import torch\nfrom torch import nn\ndef scaled(x):\n    return x * 2**0.5\n")
BOTH = Judging(protocols=("strict", "paper"), correctness_trials=1)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("x = SCALE", ["SCALE"]),
        ("def f(x):\n    return [math.pi * scaled(y) for y in x]", ["math", "scaled"]),
        ("class ModelNew(Model): pass", ["Model"]),
        ("def f(SCALE):\n    return SCALE\ny = SCALE", ["SCALE"]),
        ("def f():\n    return SCALE\nSCALE = 3", []),
        ("def f(SCALE):\n    return SCALE", []),
        ("import math\nx = [SCALE for SCALE in math.__dict__]", []),
        ("x = unknown + len(int(3))", []),
        ("x.SCALE = 3", []),
        ("SCALE = 3", []),
        ("def f():\n    global SCALE\n    SCALE = 1\ny = SCALE", []),
        ("not python", []),
    ],
)
def test_what_is_used_and_not_defined_is_lent(code: str, names: list[str]) -> None:
    assert lent_names(code, REFERENCE) == names


def test_without_borrowing_one_run_serves_both_protocols() -> None:
    assert runs(job(OWNS, REFERENCE), BOTH) == [(BOTH, [])]
    strict = Judging(protocols=("strict",))
    assert runs(job(BORROWS, REFERENCE), strict) == [(strict, None)]
    off = Judging(protocols=("paper", "strict"), lend_names=False)
    assert runs(job(BORROWS, REFERENCE), off) == [(off, None)]
    (first, lent), (second, none) = runs(job(BORROWS, REFERENCE), BOTH)
    assert (first.protocols, lent) == (("paper",), ["nn", "scaled"])
    assert (second.protocols, none) == (("strict",), None)


def test_the_checks_read_what_lent_names_stand_for() -> None:
    assert definitions_of(["scaled"], REFERENCE) == (
        "import math\nSCALE = 2.0\nFACTOR = math.sqrt(SCALE)\ndef scaled(x):\n    return x * FACTOR"
    )
    reference = f"import torch.cuda as gpu\n{REFERENCE}"
    code = f"{OWNS}\ngpu.synchronize = lambda: None\n"

    def names(text: str) -> set[str]:
        return {finding.name for finding in static_findings(text, None, reference)}

    assert names(code + definitions_of(lent_names(code, reference), reference)) - names(code) == {"timer_patched"}


@pytest.fixture(scope="module")
def executor(fork_server: ForkServer) -> Iterator[Executor]:
    with Executor(fork_server, NoBuilder(), "cpu", judging=BOTH) as value:
        yield value


def verdicts(executor: Executor, code: str) -> tuple[Verdict, Verdict]:
    strict, paper = executor.verify(job(code, REFERENCE))
    assert (strict.protocol, paper.protocol) == ("strict", "paper")
    return strict, paper


def test_paper_lends_and_strict_does_not(executor: Executor) -> None:
    strict, paper = verdicts(executor, BORROWS)
    assert paper.functional_status == "correct", paper.message
    assert paper.lent_names == ["nn", "scaled"]
    assert strict.functional_status == "import_error"
    assert "NameError" in strict.message
    assert strict.lent_names is None


def test_who_borrows_nothing_is_run_once(executor: Executor) -> None:
    strict, paper = verdicts(executor, OWNS)
    assert (strict.functional_status, paper.functional_status) == ("correct", "correct")
    assert (strict.lent_names, paper.lent_names) == (None, [])
    assert strict.phase_seconds == paper.phase_seconds


def test_a_refused_build_is_final_where_no_other_run_could_end_otherwise(fork_server: ForkServer) -> None:
    """Without the lent name this candidate asks for no build at all."""
    build = "from torch.utils.cpp_extension import load_inline\nload_inline(name='x', cpp_sources='', functions=[])\n"
    borrows = job(f"y = SCALE\n{build}{BORROWS}", REFERENCE)
    paper = Judging(protocols=("paper",))
    (verdict,) = Prebuilder(fork_server, NoBuilder(), "cpu", judging=paper).prebuild(borrows) or []
    assert (verdict.status, verdict.lent_names) == ("compile_error", ["SCALE", "nn", "scaled"])
    assert Prebuilder(fork_server, NoBuilder(), "cpu", judging=BOTH).prebuild(borrows) is None
    owns = job(f"{build}{OWNS}", REFERENCE)
    assert len(Prebuilder(fork_server, NoBuilder(), "cpu", judging=BOTH).prebuild(owns) or []) == 2


def test_a_candidate_does_not_change_what_the_reference_sees(executor: Executor) -> None:
    """KernelBench's namespace lets it: its `FACTOR` would be the reference's too."""
    code = BORROWS.replace("class ModelNew", "FACTOR = 0.0\nclass ModelNew")
    _, paper = verdicts(executor, code)
    assert paper.functional_status == "wrong_value"


def test_robust_has_a_run_of_its_own_and_is_lent_what_paper_is() -> None:
    every = Judging(protocols=("robust", "strict", "paper"))
    lent = [(judging.protocols, names) for judging, names in runs(job(BORROWS, REFERENCE), every)]
    assert lent == [(("paper",), ["nn", "scaled"]), (("strict",), None), (("robust",), ["nn", "scaled"])]
    own = [(judging.protocols, names) for judging, names in runs(job(OWNS, REFERENCE), every)]
    assert own == [(("strict", "paper"), []), (("robust",), [])]
    assert runs(job(BORROWS, REFERENCE), Judging(protocols=("robust",), lend_names=False))[0][1] is None
