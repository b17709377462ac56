"""What an executor makes of candidates that are right, wrong or broken, without any CUDA."""

from __future__ import annotations

import gc
import textwrap
from collections.abc import Iterator

import pytest
import torch
from execution import HONEST, PROBLEM, NoBuilder, honest_with, job

from dice.errors import DiceError
from dice.kernels.candidate.answer_traces import AnswerTraces
from dice.kernels.grader.executor import Executor, Prebuilder
from dice.kernels.grader.facts import busier, merged
from dice.kernels.grader.observation import count_poison, fingerprint
from dice.kernels.grader.reference import Reference, Seeds, to_device
from dice.kernels.records.evidence import OpUse, OutputFacts
from dice.kernels.records.job import Job, Judging, Limits
from dice.kernels.records.verdict import Verdict
from dice.kernels.sandbox.fork_server import ForkServer

BOTH = Judging(protocols=("paper", "strict"), correctness_trials=2)


@pytest.fixture(scope="module")
def executor(fork_server: ForkServer) -> Iterator[Executor]:
    with Executor(fork_server, NoBuilder(), "cpu", judging=BOTH) as value:
        yield value


def verdicts(executor: Executor, code: str, problem: str = PROBLEM) -> tuple[Verdict, Verdict]:
    paper, strict = executor.verify(job(code, problem))
    assert (paper.protocol, strict.protocol) == ("paper", "strict")
    return paper, strict


def problem_of(forward: str, inputs: str = "torch.randn(4, 6)", init: str = "", arguments: str = "") -> str:
    """A problem with the given body of forward; also a candidate, with `as_candidate`."""
    names = "x, y" if inputs.count("torch.") > 1 and "," in inputs.rpartition(")")[0].rpartition("torch")[0] else "x"
    return (
        "import torch\nimport torch.nn as nn\nfrom collections import namedtuple\nPair = namedtuple('Pair', 'a b')\n"
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + textwrap.indent(init or "pass", " " * 8)
        + f"\n    def forward(self, {arguments or names}):\n"
        + textwrap.indent(textwrap.dedent(forward).strip(), " " * 8)
        + f"\ndef get_inputs():\n    return [{inputs}]\ndef get_init_inputs():\n    return []\n"
    )


def as_candidate(problem: str) -> str:
    return problem.replace("class Model(", "class ModelNew(")


def test_a_right_candidate_is_correct_under_both_protocols_and_no_speed_is_claimed(executor: Executor) -> None:
    for verdict in verdicts(executor, HONEST):
        assert verdict.functional_status == "correct"
        assert verdict.status == "deceptive"  # it has no kernel of its own: rule 1
        assert verdict.trials == 2
        assert verdict.max_abs_error == 0.0
        assert verdict.speedup is None
        assert verdict.runtime_ms is None
        assert verdict.aten_ops
        assert verdict.launches is None or verdict.launches == {}
        assert verdict.build is not None
        assert verdict.build.extensions == 0
        assert verdict.backend == "cpu"


def test_a_small_error_is_correct_under_paper_and_wrong_under_strict(executor: Executor) -> None:
    code = HONEST.replace("torch.relu(self.linear(x))", "torch.relu(self.linear(x)) + 3e-3")
    paper, strict = verdicts(executor, code)
    assert paper.functional_status == "correct"
    assert strict.functional_status == "wrong_value"
    assert strict.stage == "compare"
    assert paper.max_abs_error == pytest.approx(3e-3, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        (("torch.relu(self.linear(x))", "self.linear(x)"), "wrong_value", "differ"),
        (("torch.relu(self.linear(x))", "torch.relu(self.linear(x))[:8]"), "wrong_shape", "shape"),
        (("torch.relu(self.linear(x))", "torch.relu(self.linear(x)).double()"), "wrong_dtype", "float64"),
        (("torch.relu(self.linear(x))", "torch.relu(self.linear(x)) * float('nan')"), "wrong_value", "nan"),
        (("torch.relu(self.linear(x))", "None"), "wrong_shape", "NoneType"),
        (("torch.relu(self.linear(x))", "(torch.relu(self.linear(x)),)"), "wrong_shape", "tuple"),
        (("torch.relu(self.linear(x))", "object()"), "runtime_error", "object"),
        (("torch.relu(self.linear(x))", "torch.eye(4).to_sparse()"), "runtime_error", "sparse"),
        (("torch.relu(self.linear(x))", "1 / 0"), "runtime_error", "ZeroDivisionError"),
        (("def forward(self, x)", "def forward(self)"), "runtime_error", "positional argument"),
        (("def __init__(self, n)", "def __init__(self)"), "runtime_error", "positional argument"),
        (("class ModelNew", "class Model"), "import_error", "ModelNew"),
        (("class ModelNew(nn.Module)", "ModelNew = 3\nclass Other(nn.Module)"), "import_error", "ModelNew"),
        (("class ModelNew(nn.Module)", "class ModelNew"), "runtime_error", "not a torch.nn.Module"),
        (("import torch.nn as nn", "import torch.nm as nn"), "import_error", "ModuleNotFoundError"),
        (("def forward", "def def forward"), "import_error", "SyntaxError"),
    ],
    ids=lambda value: value[1][:40] if isinstance(value, tuple) else "",
)
def test_faults_are_told_apart(executor: Executor, change: tuple[str, str], status: str, words: str) -> None:
    code = HONEST.replace(*change)
    assert code != HONEST
    for verdict in verdicts(executor, code):
        assert verdict.functional_status == status, verdict.message
        assert words in verdict.message
        assert verdict.trials == status.startswith("wrong"), "none follows a trial after which no protocol can hold"


def test_the_line_that_failed_is_named(executor: Executor) -> None:
    verdict, _ = verdicts(executor, honest_with(forward="raise ValueError('no such stride')"))
    line = (
        honest_with(forward="raise ValueError('no such stride')")
        .split("\n")
        .index("        raise ValueError('no such stride')")
    )
    assert "ValueError: no such stride" in verdict.message
    assert f"line {line + 1}, in forward" in verdict.message


NESTED = """
return {
    "pair": (x * 2, (x > 0)), "list": [x.long(), x.shape[0], 1.5, None, "name"], "named": Pair(x.sum(), x.half()),
    "complex": torch.complex(x, x), "empty": x[:0], "scalar": x.sum(), "view": x.t()[::2], "same": x,
    "bf16": x.bfloat16(), "flag": bool((x == x).all()), "nan": float("nan"), "inf": x / 0,
}
"""


def test_outputs_of_every_kind_are_compared(executor: Executor) -> None:
    problem = problem_of(NESTED)
    paper, strict = verdicts(executor, as_candidate(problem), problem)
    assert strict.functional_status == "correct", strict.message
    # Under paper NaN is equal to nothing, as in torch.allclose.
    assert paper.functional_status == "wrong_value"
    for change in (("1.5", "1.6"), ('"name"', '"nome"'), ("(x > 0)", "(x >= 9)"), ("x.half()", "x"), ("x.t()", "x")):
        wrong = as_candidate(problem).replace(*change)
        assert verdicts(executor, wrong, problem)[1].functional_status != "correct", change


def test_inputs_of_every_kind_arrive(executor: Executor) -> None:
    problem = problem_of(
        "return x['a'] * x['n'] + y[0].float() + torch.tensor(y[1])",
        inputs="{'a': torch.randn(3), 'n': 2.5}, (torch.randint(0, 9, (3,)), 7)",
        arguments="x, y",
    )
    for verdict in verdicts(executor, as_candidate(problem), problem):
        assert verdict.functional_status == "correct", verdict.message


def test_tensors_among_the_init_inputs_arrive(executor: Executor) -> None:
    problem = PROBLEM.replace("return [64]", "return [torch.tensor(64)]").replace(
        "nn.Linear(n, n)", "nn.Linear(int(n), int(n))"
    )
    code = HONEST.replace("nn.Linear(n, n)", "nn.Linear(int(n), int(n))")
    assert verdicts(executor, code, problem)[0].functional_status == "correct"


def test_cuda_means_the_cpu_on_the_cpu_back_end(executor: Executor) -> None:
    problem = problem_of(
        "return (x.cuda() * self.w).to('cuda:0')",
        inputs="torch.randn(4, 6).cuda()",
        init="self.w = nn.Parameter(torch.ones(6, device='cuda'))",
    )
    code = as_candidate(problem).replace(
        "return (x", "torch.cuda.synchronize()\n        assert x.is_cuda and x.device.type == 'cuda'\n        return (x"
    )
    for verdict in verdicts(executor, code, problem):
        assert verdict.functional_status == "correct", verdict.message
    assert not torch.cuda.is_available()


def test_what_the_cpu_back_end_lacks_is_no_fault_of_the_candidate(executor: Executor) -> None:
    verdict, _ = verdicts(executor, honest_with(init="self.graph = torch.cuda.CUDAGraph()"))
    assert verdict.status == "unsupported_on_cpu"
    assert "CUDA graphs" in verdict.message


def test_weights_come_by_name_when_the_order_of_construction_differs(executor: Executor) -> None:
    problem = problem_of("return self.b(self.a(x))", init="self.a = nn.Linear(6, 6)\nself.b = nn.Linear(6, 6)")
    swapped = problem.replace(
        "self.a = nn.Linear(6, 6)\n        self.b = nn.Linear(6, 6)",
        "self.b = nn.Linear(6, 6)\n        self.a = nn.Linear(6, 6)",
    )
    assert swapped != problem
    verdict, _ = verdicts(executor, as_candidate(swapped), problem)
    assert verdict.functional_status == "correct", verdict.message
    assert not verdict.notes


def test_weights_come_by_seed_when_the_names_differ_and_that_is_noted(executor: Executor) -> None:
    code = HONEST.replace("self.linear", "self.dense")
    verdict, _ = verdicts(executor, code)
    assert verdict.functional_status == "correct", verdict.message
    assert any("weights by seed" in note for note in verdict.notes)


def test_overwritten_inputs_neither_hurt_nor_hide(executor: Executor) -> None:
    code = honest_with(forward="y = torch.relu(self.linear(x))\nx.zero_()\nreturn y")
    _, strict = verdicts(executor, code)
    assert strict.functional_status == "correct"
    assert "input_mutated" in {finding.name for finding in strict.deception}
    _, honest = verdicts(executor, HONEST)
    assert "input_mutated" not in {finding.name for finding in honest.deception}


def test_a_reference_that_overwrites_its_inputs_allows_the_same(executor: Executor) -> None:
    problem = problem_of("x.mul_(2)\nreturn x + 1")
    _, strict = verdicts(executor, as_candidate(problem), problem)
    assert strict.functional_status == "correct", strict.message
    assert "input_mutated" not in {finding.name for finding in strict.deception}


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (
            "self.kept = getattr(self, 'kept', {})\nkey = x.data_ptr()\nif key not in self.kept:\n"
            "    self.kept[key] = torch.relu(self.linear(x))\nreturn self.kept[key]",
            "stale_output",
        ),
        (
            "self.kept = getattr(self, 'kept', {})\nkey = float(x[0, 0]), float(x[-1, -1])\nif key not in self.kept:\n"
            "    self.kept[key] = torch.relu(self.linear(x))\nreturn self.kept[key]",
            "stale_output",
        ),
        (
            "global KEPT\nif 'KEPT' not in globals():\n    KEPT = [p.clone() for p in self.linear.parameters()]\n"
            "return torch.relu(x @ KEPT[0].t() + KEPT[1])",
            "stale_output",
        ),
        (
            "return torch.relu(self.linear(x)) + 0.01 * torch.rand(1, generator=torch.Generator().manual_seed(id(x)))",
            "",
        ),
    ],
    ids=["pointer cache", "fingerprint cache", "weight cache", "noise"],
)
def test_experiments_see_what_the_trials_do_not(executor: Executor, lines: str, name: str) -> None:
    """Each is right on fresh tensors or within the paper's tolerance; changing one thing shows it."""
    _, strict = verdicts(executor, honest_with(forward=lines))
    found = {finding.name for finding in strict.deception}
    assert strict.status != "correct"
    if name and strict.functional_status == "correct":
        assert name in found, (strict.message, found)


def test_honest_candidates_pass_all_experiments(executor: Executor) -> None:
    for code in (HONEST, honest_with(forward="self.calls = getattr(self, 'calls', 0) + 1")):
        found = {finding.name for finding in verdicts(executor, code)[1].deception}
        assert not found & {"stale_output", "unstable_output", "deferred_work", "uninitialised_output"}


def test_unwritten_memory_is_not_zero(executor: Executor) -> None:
    problem = problem_of("return torch.zeros_like(x)", inputs="torch.randn(256, 256)")
    lazy = as_candidate(problem).replace("zeros_like", "empty_like")
    _, strict = verdicts(executor, lazy, problem)
    assert strict.functional_status == "wrong_value"
    # what lay in memory may be wrong by itself, and the text is suspicious: only the poison tells how much was not written
    seen = [one.evidence for one in strict.deception if (one.name, one.source) == ("uninitialised_output", "dynamic")]
    assert seen == ["65536 output elements were never written"]
    assert verdicts(executor, as_candidate(problem), problem)[1].functional_status == "correct"


@pytest.mark.parametrize(
    ("forward", "status"),
    [("x * 1e-8", "wrong_value"), ("((x + 1) - x - 1) * 1e-2", "correct")],
    ids=["signal", "noise"],
)
def test_tiny_outputs_count_where_fp64_gives_the_same(executor: Executor, forward: str, status: str) -> None:
    problem = problem_of(f"return {forward}", inputs="torch.rand(64, 64)")
    zeros = as_candidate(problem).replace(f"return {forward}", "return x * 1e-30")
    assert verdicts(executor, zeros, problem)[1].functional_status == status
    assert verdicts(executor, as_candidate(problem), problem)[1].functional_status == "correct"


def test_what_an_extension_is_given_is_kept_as_it_was() -> None:
    made = torch.randn(40, 50)
    answer, other = made.clone(), torch.randn(40, 50)
    traces = AnswerTraces(made.nbytes, on_gpu=False)
    traces.begin(launching=False)
    traces.note("scale", (torch.randn(40, 50), [made], 3))
    made.zero_()
    traces.end()
    assert traces.shares(answer) == {"equal": 1.0, "rearranged": 1.0}
    assert traces.shares([answer, other])["equal"] == pytest.approx(0.5)
    assert traces.shares({"same": answer.half()})["equal"] == 1.0
    assert traces.shares(other) == {} == traces.shares([])


def test_poison_is_told_from_other_nans() -> None:
    expected = torch.tensor([1.0, float("nan"), 3.0, 4.0])
    actual = torch.tensor([-1, -1, -1, 5], dtype=torch.int32).view(torch.float32)
    assert count_poison([expected], [actual]) == 2
    assert count_poison(expected, torch.full((4,), float("nan"))) == 0
    assert count_poison(expected.half(), torch.full((4,), -1, dtype=torch.int16).view(torch.float16)) == 3
    assert count_poison(torch.ones(2, dtype=torch.int64), torch.full((2,), -1)) == 0
    assert count_poison(expected, actual[:2]) == 0


def test_fingerprints_tell_outputs_apart() -> None:
    base = [torch.arange(20.0).reshape(4, 5), {"n": 3, "mask": torch.ones(3, dtype=torch.bool)}]
    assert fingerprint(base) == fingerprint(to_device(base, torch.device("cpu")))
    for change in (
        [base[0].t().contiguous(), base[1]],
        [base[0] + 1e-6 * (base[0] == 7), base[1]],
        [base[0], {"n": 4, "mask": base[1]["mask"]}],
        [base[0], {"n": 3, "mask": torch.tensor([True, True, False])}],
    ):
        assert fingerprint(change) != fingerprint(base)


def test_the_worst_of_all_calls_is_kept() -> None:
    first = OutputFacts(foreign_types=["m.Lazy"])
    second = OutputFacts(instance_attributes=["cpu"])
    both = merged(first, second)
    assert both == merged(second, first)
    assert both.foreign_types == ["m.Lazy"]
    assert both.instance_attributes == ["cpu"]
    assert merged(None, second) == second


def test_a_deferred_write_is_caught(executor: Executor) -> None:
    code = honest_with(
        forward="""
import threading
if hasattr(self, "again"):
    self.again.set()
self.again = threading.Event()
out = torch.zeros(16, 64)
def later(value=torch.relu(self.linear(x)).clone(), again=self.again):
    again.wait()  # until the next call: then this output has been fetched
    out.copy_(value)
threading.Thread(target=later, daemon=True).start()
return out
"""
    )
    assert verdicts(executor, code)[1].functional_status == "wrong_value"


def test_a_fixed_seed_repeats_a_run_and_another_one_does_not(fork_server: ForkServer) -> None:
    code = HONEST.replace("torch.relu(self.linear(x))", "torch.relu(self.linear(x)) * 1.004")
    errors = []
    for seed in (42, 42, 43):
        judging = Judging(seed=seed, correctness_trials=2)
        with Executor(fork_server, NoBuilder(), "cpu", judging=judging) as executor:
            errors.append(executor.verify(job(code))[0].max_abs_error)
    assert errors[0] == errors[1] != errors[2]


def test_one_executors_candidates_do_not_share_a_reference_state(fork_server: ForkServer) -> None:
    """A reference that counts its calls answers every candidate alike."""
    problem = problem_of(
        "self.count += 1\nreturn x * self.count", init="self.register_buffer('count', torch.zeros(()))"
    )
    judging = Judging(seed=42, correctness_trials=3)
    with Executor(fork_server, NoBuilder(), "cpu", judging=judging) as executor:
        for _ in range(2):
            (verdict,) = executor.verify(job(as_candidate(problem), problem))
            assert verdict.functional_status == "correct", verdict.message


def test_seeds_are_kernelbenchs_own_when_given_and_secret_otherwise() -> None:
    torch.manual_seed(42)
    expected = tuple(int(torch.randint(0, 2**32 - 1, (1,)).item()) for _ in range(5))
    assert Seeds.draw(42, 5) == Seeds(42, expected, expected)
    secret = Seeds.draw(None, 5)
    assert len({secret.weights, *secret.inputs, *secret.forward}) == 11
    assert secret != Seeds.draw(None, 5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("def get_inputs", "def inputs"), "defines no get_inputs"),
        (("import torch.nn as nn", "import torch.nm as nn"), "cannot be executed"),
        (("return [torch.randn(16, 64)]", "return [object()]"), "an input cannot be passed on"),
        (("return [torch.randn(16, 64)]", "return 1 / 0"), "get_inputs fails"),
        (("torch.relu(self.linear(x))", "self.missing(x)"), "Model's forward fails"),
        (("nn.Linear(n, n)", "nn.Linear(n)"), "Model cannot be built"),
    ],
    ids=lambda value: value[1][:30] if isinstance(value, tuple) else "",
)
def test_a_bad_problem_is_one_sentence_and_not_the_candidates_fault(
    executor: Executor, change: tuple[str, str], words: str
) -> None:
    with pytest.raises(DiceError, match=words) as caught:
        executor.verify(job(HONEST, PROBLEM.replace(*change)))
    assert "level1/1_small" in str(caught.value)


def test_a_problems_switches_do_not_leak_into_the_next() -> None:
    before = (torch.get_default_dtype(), torch.backends.cuda.matmul.allow_tf32)
    code = "import torch\ntorch.set_default_dtype(torch.float64)\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
    Reference("x", code + PROBLEM, torch.device("cpu"))
    assert (torch.get_default_dtype(), torch.backends.cuda.matmul.allow_tf32) == before


def test_copies_of_inputs_keep_their_structure() -> None:
    value = [torch.ones(2), {"a": (torch.zeros(1), 3)}, torch.Size([2])]
    copy = to_device(value, torch.device("cpu"))
    assert torch.equal(copy[0], value[0])
    assert copy[0] is not value[0]
    assert copy[1]["a"][1] == 3
    assert type(copy[2]) is torch.Size


def test_no_code_is_a_verdict(executor: Executor) -> None:
    answer = Job(problem_id="level1/1_small", problem_code=PROBLEM, sample=3, code=None, no_code_reason="no fence")
    for verdict in executor.verify(answer):
        assert (verdict.status, verdict.stage, verdict.message) == ("no_code", "extract", "no fence")
        assert verdict.sample == 3


def test_where_the_time_went_is_known(executor: Executor) -> None:
    seconds = executor.verify(job(HONEST))[0].phase_seconds
    assert {"spawn", "import", "init", "forward", "reference", "compare", "close"} <= set(seconds)
    assert all(value >= 0 for value in seconds.values())


BUILDS = "from torch.utils.cpp_extension import load_inline\n" + HONEST


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (BUILDS + "def def", "import_error"),
        (BUILDS, None),
        (HONEST, None),
        (BUILDS + "1 / 0", None),
        (BUILDS + "while True: pass", None),
        (BUILDS.replace("class ModelNew", "class Other"), None),
        (BUILDS + "raise SyntaxError('made up')", None),
    ],
    ids=["syntax", "nothing to build", "no builder", "fails", "hangs", "no model", "false syntax error"],
)
def test_prebuilding_settles_only_what_no_gpu_could_change(
    fork_server: ForkServer, code: str, status: str | None
) -> None:
    limits = Limits(import_timeout_s=1) if "while True" in code else Limits()
    prebuilder = Prebuilder(fork_server, NoBuilder(), "cuda", limits, BOTH)
    settled = prebuilder.prebuild(job(code))
    if status is None:
        assert settled is None
    else:
        assert settled is not None
        assert [verdict.status for verdict in settled] == [status, status]


@pytest.mark.parametrize(
    ("forward", "multiplications"),
    [
        ("x @ x.T", 2 * 3 * 3 * 5),
        ("torch.relu(x)", 0),
        ("F.conv1d(x[None], torch.ones(2, 3, 2))", 2 * (2 * 4) * (3 * 2)),
        ("F.scaled_dot_product_attention(x[None], x[None], x[None])", 2 * 2 * 3 * 3 * 5),
        ("x * float(x.sum())", 0),  # not without values
        ("undefined", 0),
    ],
)
def test_products_and_convolutions_of_a_problem_are_counted_without_computing_them(
    fork_server: ForkServer, forward: str, multiplications: int
) -> None:
    code = f"""
import torch
import torch.nn.functional as F
class Model(torch.nn.Module):
    def forward(self, x):
        return {forward}
def get_inputs():
    return [torch.rand(3, 5)]
def get_init_inputs():
    return []
"""
    assert Prebuilder(fork_server, NoBuilder(), "cuda").work(job(HONEST, code)) == multiplications


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (("forward(", "forward("), "correct"),
        (("torch.relu(x)", "torch.relu(x) * 1.1"), "wrong_value"),
        (("return", "raise ValueError(x) #"), "runtime_error"),
        (None, "host_error"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_run_leaves_no_tensors_behind(executor: Executor, change: tuple[str, str] | None, status: str) -> None:
    """They may be gigabytes of a GPU: whoever is next cannot wait until Python looks for garbage."""
    n = 10_007
    problem = problem_of("return torch.relu(x)", f"torch.randn({n})")
    code = as_candidate(problem)
    if change:
        code = code.replace(*change)
    else:
        problem = problem.replace("return torch", "y = x + 1; raise MemoryError('full'); return torch")
    gc.collect()
    gc.disable()
    try:
        assert {verdict.functional_status for verdict in verdicts(executor, code, problem)} == {status}
        assert not [1 for value in gc.get_objects() if type(value) is torch.Tensor and value.numel() == n]
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "inputs", ["torch.randn(40, 24).t()", "torch.randn(2, 8, 6, 6).to(memory_format=torch.channels_last)"]
)
def test_inputs_may_have_any_strides(executor: Executor, inputs: str) -> None:
    problem = problem_of("return torch.relu(x)", inputs, arguments="x")
    for verdict in verdicts(executor, as_candidate(problem), problem):
        assert verdict.functional_status == "correct", verdict.message
    wrong = as_candidate(problem).replace("torch.relu(x)", "torch.relu(x.reshape(-1)[:1] + 0 * x)")
    assert {verdict.functional_status for verdict in verdicts(executor, wrong, problem)} == {"wrong_value"}


NORM = problem_of("return self.norm(x)", init="self.norm = nn.LayerNorm(6)")
ENDS_WITH_OTHER_WEIGHTS = "return os.abort() if bool((self.norm.weight != 1).any()) else self.norm(x)"
ENDS_AFTER_CALLS = "self.calls += 1\nreturn os.abort() if self.calls > 20 else self.norm(x)"


@pytest.mark.parametrize(
    ("forward", "strict_status"), [(ENDS_WITH_OTHER_WEIGHTS, "correct"), (ENDS_AFTER_CALLS, "runtime_error")]
)
def test_a_crash_in_an_experiment_is_no_failure_under_paper(
    executor: Executor, forward: str, strict_status: str
) -> None:
    """Nor is it one under strict where the problem never draws such values."""
    init = "self.norm = nn.LayerNorm(6)\nself.calls = 0"
    code = "import os\n" + as_candidate(problem_of(forward, init=init))
    paper, strict = verdicts(executor, code, NORM)
    assert (paper.functional_status, paper.trials) == ("correct", 2), paper.message
    assert strict.functional_status == strict_status, strict.message
    assert ("SIGABRT" in strict.message) == (strict_status != "correct")
    assert [verdict.host.isolation for verdict in (paper, strict)] == [paper.host.isolation] * 2


def test_of_two_recorded_calls_the_busier_one_counts() -> None:
    little, much = {"aten::add": OpUse(count=9, elements=10)}, {"aten::mm": OpUse(count=1, elements=20)}
    assert busier(little, much) == busier(much, little) == much
    assert busier({}, little) == little
    again = {"aten::sub": OpUse(count=1, elements=20)}
    assert busier(much, again) == again  # the announced one, which comes last


def test_prebuilding_leaves_what_went_wrong_here_to_the_executor(
    fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("dice.kernels.grader.executor.prebuild_candidate", full)
    assert Prebuilder(fork_server, NoBuilder(), "cuda", Limits(), BOTH).prebuild(job(BUILDS)) is None
