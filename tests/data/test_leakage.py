"""What counts as one program, tested by an oracle of its own: pairs of programs written by hand, and the generator's programs
compared with the mini benchmark by running both on the benchmark's inputs here, without any code of `dice.data.leakage`."""

import resource
import signal

import pytest
import torch

from dice.data.leakage import program as executing
from dice.data.leakage.index import leak_index
from dice.data.leakage.outputs import answered, exam_of
from dice.data.leakage.trace import trace
from dice.data.synthetic.config import TINY
from dice.data.synthetic.generator import generate
from dice.kernels.api import Problem, load_mini

PROGRAM = """import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    {init}
    def forward(self, {names}):
        {body}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return {arguments}
"""
INIT = "def __init__(self{names}):\n        super().__init__()\n        {body}\n"
ONE = "torch.randn(4, 6)"


def program(expression, *inputs, init="", arguments="[]", names=""):
    """A program in `x` (and `y`, `z`, ...) that returns `expression`, or ends in it after statements."""
    made = INIT.format(names=names, body=init) if init else ""
    *statements, last = expression.split("; ")
    body = "\n        ".join([*statements, f"return {last}"])
    given = inputs or (ONE,)
    return PROGRAM.format(
        init=made, names=", ".join("xyzvw"[: len(given)]), body=body, inputs=", ".join(given), arguments=arguments
    )


def leak_of(candidate, exam):
    problem = Problem(id="level1/1_Exam", level=1, number=1, name="Exam", code=exam, version="test")
    return leak_index([problem], heldout=False).check(candidate)


IMAGE = "torch.randn(2, 3, 8, 8)"
SQUARE = ("torch.randn(5, 7)", "torch.randn(7, 4)")
LONG = ("torch.randn(4, 6)", "torch.rand(4, 6)")
SAME = {
    "a method and a function": (program("x.sum(dim=-1)"), program("torch.sum(x, dim=-1)")),
    "keyword and positional": (program("torch.softmax(x, dim=1)"), program("x.softmax(-1)")),
    "with a constructor and without": (
        program("torch.tanh(x)", init="pass"),
        program("torch.tanh(x)", "torch.randn(3, 5, 7)"),
    ),
    "reordered operands": (
        program("x * 2 + y * x", *LONG),
        program("torch.add(torch.mul(x, y), 2 * x)", "torch.randn(3, 5)", "torch.rand(3, 5)"),
    ),
    "relu and clamp": (program("F.relu(x)"), program("torch.clamp(x, min=0)")),
    "a module and a function": (
        program("self.act(x)", init="self.act = nn.LeakyReLU(0.2)"),
        program("F.leaky_relu(x, negative_slope=0.2)"),
    ),
    "a weight and an input": (
        program("self.fc(x)", init="self.fc = nn.Linear(6, 5)"),
        program("x @ y.T + z", ONE, "torch.randn(5, 6)", "torch.randn(5)"),
    ),
    "a layer and its formula": (
        program("self.norm(x)", init="self.norm = nn.LayerNorm(6, elementwise_affine=False)"),
        program("(x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)"),
    ),
    "einsum and matmul": (program("torch.einsum('ik,kj->ij', x, y)", *SQUARE), program("x @ y", *SQUARE)),
    "operands in another order of inputs": (program("y @ x", *reversed(SQUARE)), program("torch.mm(x, y)", *SQUARE)),
    "a transposed product": (
        program("x.transpose(0, 1) @ y", "torch.randn(7, 5)", "torch.randn(7, 4)"),
        program("torch.matmul(x.permute(1, 0), y)", "torch.randn(9, 5)", "torch.randn(9, 3)"),
    ),
    "views that change nothing": (
        program("torch.exp(x.view(2, -1)).reshape(2, 3, 8, 8)", IMAGE),
        program("torch.exp(x)", IMAGE),
    ),
    "another order of dimensions": (
        program("torch.amax(x.permute(0, 2, 3, 1), dim=-1)", IMAGE),
        program("torch.max(x, dim=1)[0]", IMAGE),
    ),
    "changes in place": (program("y = x.clone(); y.mul_(3); y.add_(1); y"), program("x * 3 + 1")),
    "a change in place through a view": (
        program("y = torch.zeros_like(x); y[:, 1:] = x[:, 1:]; y"),
        program("F.pad(x[:, 1:], (1, 0))"),
    ),
    "a view of scattered values": (
        program("x.scatter(1, y, 1.0)[:, 1:]", ONE, "torch.arange(4)[:, None]"),
        program("torch.scatter(x, dim=-1, index=y, value=1.0)[:, 1:]", ONE, "torch.arange(4)[:, None]"),
    ),
    "a softmax by hand": (program("torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)"), program("F.softmax(x, dim=-1)")),
    "a silu by hand": (program("x * torch.sigmoid(x)"), program("F.silu(x)", "torch.randn(2, 3, 5)")),
    "other hyper-parameters": (program("F.elu(x, alpha=0.3)"), program("F.elu(x, alpha=0.7)")),
    "hyper-parameters from the constructor": (
        program("x * self.a", init="self.a = a", names=", a", arguments="[0.3]"),
        program("torch.mul(self.s, x)", init="self.s = s", names=", s", arguments="[3.0]"),
    ),
    "another batch": (
        program("F.conv2d(x, y)", "torch.randn(2, 3, 9, 9)", "torch.randn(4, 3, 3, 3)"),
        program("self.c(x)", "torch.randn(5, 8, 6, 6)", init="self.c = nn.Conv2d(8, 2, 3, bias=False)"),
    ),
    "the first place of a short dimension and of a long one": (
        program("torch.tanh(self.f(x[:, 0]))", "torch.randn(3, 5, 24)", init="self.f = nn.Linear(24, 6)"),
        program("torch.tanh(self.f(x[:, 0]))", "torch.randn(2, 32, 16)", init="self.f = nn.Linear(16, 10)"),
    ),
    "the last place of a short dimension and of a long one": (
        program("torch.tanh(self.f(x[:, 7]))", "torch.randn(3, 8, 24)", init="self.f = nn.Linear(24, 6)"),
        program("torch.tanh(self.f(x[:, -1]))", "torch.randn(2, 32, 16)", init="self.f = nn.Linear(16, 10)"),
    ),
    "a kl divergence by hand": (
        program("(y * (torch.log(y) - x)).sum(-1)", *LONG),
        program("F.kl_div(x, y, reduction='none').sum(-1)", *LONG),
    ),
}  # fmt: skip
OTHER = {
    "sum and mean": (program("x.sum(-1)"), program("x.mean(-1)")),
    "another dimension": (program("x.sum(0)"), program("x.sum(1)")),
    "another dimension of a square": (
        program("torch.softmax(x, 0)", "torch.randn(6, 6)"),
        program("torch.softmax(x, 1)", "torch.randn(6, 6)"),
    ),
    "one operator more": (program("F.softplus(x) * 2"), program("F.softplus(x)")),
    "twice and thrice": (program("x * 2"), program("x * 3")),
    "square and cube": (program("x ** 2"), program("x ** 3")),
    "square root and its reciprocal": (program("torch.sqrt(x * x + 0.5)"), program("torch.rsqrt(x * x + 0.5)")),
    "operands that do not commute": (program("x - torch.exp(x)"), program("torch.exp(x) - x")),
    "relu and abs": (program("F.relu(x)", "torch.rand(4, 6)"), program("torch.abs(x)", "torch.rand(4, 6)")),
    "gelu and its approximation": (program("F.gelu(x)"), program("F.gelu(x, approximate='tanh')")),
    "a bias of rows and of columns": (
        program("x + y", "torch.randn(6, 6)", "torch.randn(6)"),
        program("x + y[:, None]", "torch.randn(6, 6)", "torch.randn(6)"),
    ),
    "biased and unbiased": (program("x.var(-1)"), program("x.var(-1, unbiased=False)")),
    "a product and a transposed one": (
        program("x @ y", "torch.randn(5, 5)", "torch.randn(5, 5)"),
        program("x.T @ y", "torch.randn(5, 5)", "torch.randn(5, 5)"),
    ),
    "values and places": (program("torch.max(x, 1)[0]"), program("torch.max(x, 1)[1]")),
    "one input and two": (program("x * x"), program("x * y", *LONG)),
    "the same input twice": (program("x * x + y", *LONG), program("x * y + y", *LONG)),
    "another stride": (program("F.max_pool2d(x, 2)", IMAGE), program("F.max_pool2d(x, 2, stride=1)", IMAGE)),
    "another part": (program("x[:, :3]"), program("x[:, 3:]")),
    "merged in another way": (
        program("x.reshape(6, 4).softmax(-1)", "torch.randn(2, 3, 4)"),
        program("x.reshape(2, 12).softmax(-1)", "torch.randn(2, 3, 4)"),
    ),
    "another part changed in place": (
        program("y = x.clone(); y[:, 0] = 0; y"),
        program("y = x.clone(); y[:, 1] = 0; y"),
    ),
    "running and whole sum": (program("x.cumsum(-1)"), program("x.flip(-1).cumsum(-1).flip(-1)")),
}


@pytest.mark.parametrize("name", SAME)
def test_two_spellings_of_one_computation_are_one_program(name):
    one, other = SAME[name]
    first, second = leak_of(one, other), leak_of(other, one)
    assert first is not None
    assert second is not None
    assert {first.problem_id, second.problem_id} == {"level1/1_Exam"}


@pytest.mark.parametrize("name", OTHER)
def test_a_near_miss_is_another_program(name):
    one, other = OTHER[name]
    assert leak_of(one, other) is None
    assert leak_of(other, one) is None


@pytest.mark.parametrize("sizes", [("4096", "262144"), ("64", "64", "128", "128", "128")])
def test_a_problem_of_gigabytes_is_run_on_small_inputs(sizes):
    """Its own inputs are never drawn: they would take gigabytes."""
    large = f"torch.rand({', '.join(sizes)})"
    small = f"torch.rand({', '.join('3' for _ in sizes)})"
    exam = program("torch.softmax(x, dim=1)", large)
    by_hand = "e = torch.exp(x); e / e.sum(1, keepdim=True)"
    leak = leak_of(program(by_hand, small), exam)
    assert leak is not None
    assert leak.kind == "outputs"
    assert leak_of(program(by_hand.replace("sum(1", "sum(0"), small), exam) is None


@pytest.mark.parametrize(
    ("given", "moved"),
    [("torch.rand(4, 6, device='cuda')", "x"), ("torch.rand(4, 6).cuda()", "x"), (ONE, "x.to('cuda:0').cuda(0)")],
)
def test_a_problem_that_names_a_gpu_is_run_without_one(given, moved):
    exam = program(f"torch.softmax({moved}, dim=1)", given)
    by_hand = "e = torch.exp(x); e / e.sum(1, keepdim=True)"
    leak = leak_of(program(by_hand), exam)
    assert leak is not None
    assert leak.kind == "outputs"
    assert leak_of(program(by_hand.replace("sum(1", "sum(0")), exam) is None


def out_of_time_where(condition, expression):
    """A program whose time is over where `condition` holds: it sends itself the alarm of the limit."""
    alarm = f"bool({condition}) and signal.raise_signal(signal.SIGALRM)"
    return "import signal\n" + program(f"{alarm}; {expression}")


def test_programs_run_under_a_limit_that_ends_with_them():
    with executing.contained():
        assert 0 < signal.alarm(0) <= executing.TIME_LIMIT_S
    with executing.contained():
        pass
    assert signal.alarm(0) == 0
    with pytest.raises(executing.Failed, match=rf"^more than {executing.TIME_LIMIT_S} s$"), executing.contained():
        signal.raise_signal(signal.SIGALRM)


def test_the_time_limit_ends_a_program_and_not_only_its_first_run():
    """An exam whose run in fp64 fails is run again in fp32. The limit is given once: its end must not be taken for a failure,
    behind which the second run would have no limit."""
    with pytest.raises(executing.Failed, match=r"^more than \d+ s$"):
        exam_of(out_of_time_where("x.dtype == torch.float64", "torch.tanh(x)"))


def test_a_program_that_wants_much_memory_fails_and_does_not_end_the_process(monkeypatch: pytest.MonkeyPatch):
    """On an exam's inputs a layer of it may grow to any size: Linux killed `dice synth` at 24 GB."""
    monkeypatch.setattr(executing, "MEMORY_LIMIT_GIB", 1)
    before = resource.getrlimit(resource.RLIMIT_AS)
    with executing.contained():
        torch.empty(1 << 26)
        with pytest.raises(executing.Failed, match="allocate"), executing.blamed("Model"):
            torch.empty(1 << 29)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    torch.empty(1 << 29)  # untouched, so no memory


def test_held_out_operators_are_seen_though_the_outputs_cannot_be_compared():
    exam = Problem(
        id="level1/1_Exam", level=1, number=1, name="Exam", code=program("x.tanh()", f"{ONE} + 9"), version="t"
    )
    index = leak_index([exam])
    leak = index.check(out_of_time_where("x.max() > 6", "F.softplus(x)"))
    assert leak is not None
    assert leak.kind == "heldout"


def test_weights_of_one_exam_do_not_stay_for_the_next():
    drawn = "self.layer = nn.LayerNorm(4); nn.init.uniform_(self.layer.weight, 2, 3)".replace("; ", "\n        ")
    layer = program("self.layer(x)", "torch.randn(3, 4)", init="self.layer = nn.LayerNorm(4)")
    other = program("self.layer(x) + 1", "torch.randn(3, 4)", init=drawn)
    plain = program("F.layer_norm(x, (4,))", "torch.randn(3, 4)")
    assert answered(layer, trace(layer), [("other", exam_of(other)), ("plain", exam_of(plain))]) == "plain"


def test_a_program_that_refuses_the_indices_of_one_exam_may_take_those_of_another():
    large = program("F.one_hot(x, 9).float()", "torch.arange(8)")
    small = program("F.one_hot(x, 5).float()", "torch.arange(8) % 5")
    assert answered(small, trace(small), [("large", exam_of(large)), ("small", exam_of(small))]) == "small"


def test_a_program_that_computes_in_float32_alone_is_compared_in_float32():
    exam = program("torch.softmax(x, dim=-1)")
    alone = program("torch.softmax(x @ torch.eye(6), dim=-1)")
    assert answered(alone, trace(alone), [("exam", exam_of(exam))]) == "exam"


def test_a_program_that_is_checked_again_is_counted_again():
    index = leak_index([])
    for _ in range(2):
        index.check(program("torch.no_such_function(x)"))
    assert (index.counts.checked, index.counts.unjudged.total()) == (2, 2)


def executed(code):
    space = {}
    exec(compile(code, "<program>", "exec"), space)
    return space


def outputs_of(space, arguments, inputs):
    """What a program gives after one seed, as a list of tensors; None where it cannot run so."""
    torch.default_generator.manual_seed(0)  # torch.manual_seed writes down where it was called, for each device
    try:
        with torch.no_grad():
            out = space["Model"](*arguments)(*(one.clone() if torch.is_tensor(one) else one for one in inputs))
    except Exception:  # noqa: BLE001  the program was not made for these inputs
        return None
    return [one.double() for one in (out if isinstance(out, tuple | list) else [out])]


def answers(space, exam, inputs, expected):
    """Whether a program computes the exam's outputs, by running it: the oracle of this file."""
    for arguments in (exam["get_init_inputs"](), space["get_init_inputs"]()):
        found = outputs_of(space, arguments, inputs)
        if found is not None and len(found) == len(expected):
            pairs = list(zip(found, expected, strict=True))
            if all(a.shape == b.shape and torch.allclose(a, b, 1e-4, 1e-4, equal_nan=True) for a, b in pairs):
                return True
    return False


@pytest.fixture(scope="module")
def mini():
    return load_mini("cpu")


@pytest.fixture(scope="module")
def exams(mini):
    made = []
    for problem in mini:
        space = executed(problem.code)
        torch.manual_seed(1)
        inputs = space["get_inputs"]()
        made.append((space, inputs, outputs_of(space, space["get_init_inputs"](), inputs)))
    return made


def answering(codes, exams):
    spaces = [executed(code) for code in codes]
    return [code for code, space in zip(codes, spaces, strict=True) if any(answers(space, *exam) for exam in exams)]


SAMPLE = range(90)


@pytest.mark.filterwarnings("ignore")
def test_the_generators_programs_answer_no_exam_problem_once_they_are_checked(mini, exams):
    """Without the check some do; with it, running them on the exam's inputs finds none, and it keeps most programs."""
    plain = [generate(TINY, 2001, index).pytorch_code for index in SAMPLE]
    index = leak_index(mini)
    twins = answering(plain, exams)
    assert len(twins) >= 3
    assert all(index.leaks(code) for code in twins)
    kept = [code for code in plain if not index.leaks(code)]
    assert len(kept) > 0.6 * len(plain)
    drawn_anew = {generate(TINY, 2001, number, index.leaks).pytorch_code for number in SAMPLE}
    assert not drawn_anew & set(twins)
    assert not answering(drawn_anew - set(plain), exams)
    assert index.counts.leaks > len(twins)
