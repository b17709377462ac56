"""Each rule on a candidate's Python alone, with a twin on which it stays silent; and each rule on C++ words."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.answers import answer_findings
from dice.kernels.checks.catalogue import CATALOGUE
from dice.kernels.checks.cuda_rules import cuda_findings
from dice.kernels.checks.dynamic import dynamic_findings
from dice.kernels.checks.extensions import extension_names
from dice.kernels.checks.inputs import count_inputs, forward_parameters, made_inputs
from dice.kernels.checks.precision import for_narrow_inputs, precision_findings, uses_narrow_types
from dice.kernels.checks.prediction import predictions
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.sensitive import BASES, C_FUNCTIONS, CALLS, IMPORTS
from dice.kernels.checks.sniffing import sniffing
from dice.kernels.checks.substitution import kernels_in_text, paper_findings, substitution_findings
from dice.kernels.checks.tampering import tampering_findings
from dice.kernels.checks.timing import timing_findings
from dice.kernels.checks.torch_calls import torch_computations
from dice.kernels.checks.weights import becomes_a_weight
from dice.kernels.records.evidence import Change, Clocks, ExtensionUse, OpUse, RunEvidence
from dice.kernels.source.cuda_source import CudaSource

PROBLEM = PythonSource(
    """
import torch
class Model(torch.nn.Module):
    def forward(self, x, n):
        return torch.relu(x) * n
def get_inputs():
    return [torch.rand(4, 4), torch.randint(0, 9, (4,))]
""",
    "Model",
)


def candidate(forward: str = "return ext.relu(x, n)", init: str = "pass", top: str = "") -> PythonSource:
    """A clean candidate but for what is given."""
    indent = "\n        "
    return PythonSource(
        f'''
import gc, os, random, sys, threading, time
import torch
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline
ext = load_inline("e", "torch::Tensor relu(torch::Tensor x);", """__global__ void k(float* x) {{ }}""", functions=["relu"])
{top}
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {init.replace("; ", indent)}
    def forward(self, x, n):
        {forward.replace("; ", indent)}
'''
    )


MODULE = "class Own(nn.Module):\n    def forward(self, x):\n        return ext.relu(x, 1)"
RULES = {
    "answers": lambda source: answer_findings(source, PROBLEM),
    "tampering": tampering_findings,
    "timing": timing_findings,
    "precision": lambda source: precision_findings(source, PROBLEM),
    "substitution": substitution_findings,
    "paper": lambda source: paper_findings(source, None),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_clean_candidate(rule: str) -> None:
    assert list(RULES[rule](candidate())) == []


@pytest.mark.parametrize(
    ("rule", "found", "given"),
    [
        ("answers", "result_cache", {"init": "self.c = {}", "forward": "self.c[x.data_ptr()] = ext.relu(x, n); return x"}),
        ("answers", None, {"init": "self.c = {}", "forward": "self.c[x.shape] = 1; return ext.relu(x, n)"}),
        ("tampering", "gc_access", {"forward": "gc.get_objects(); return ext.relu(x)"}),
        ("tampering", None, {"forward": "gc.collect(); return ext.relu(x)"}),
        ("tampering", "frame_access", {"top": "sys._getframe(1)"}),
        ("tampering", "torch_patched", {"top": "torch.allclose = lambda *a, **k: True"}),
        ("tampering", None, {"top": "torch.backends.cudnn.benchmark = True"}),
        ("tampering", "timer_patched", {"top": "torch.cuda.synchronize = lambda: None"}),
        ("tampering", "process_spawned", {"top": "os.system('true')"}),
        ("tampering", None, {"top": "os.path.join('a', 'b')"}),
        ("tampering", "background_thread", {"forward": "threading.Thread(target=ext.relu).start(); return x"}),
        ("timing", "side_stream", {"forward": "s = torch.cuda.Stream(); torch.cuda.set_stream(s); return ext.relu(x)"}),
        ("timing", "deliberate_delay", {"forward": "time.sleep(1); return ext.relu(x)"}),
        ("timing", None, {"forward": "time.time(); return ext.relu(x)"}),
        ("timing", "cuda_graph", {"init": "self.g = torch.cuda.CUDAGraph()"}),
        ("timing", "call_counting", {"init": "self.i = 0", "forward": "self.i += 1; return ext.f(x) if self.i > 3 else x"}),
        ("timing", "call_counting", {"top": "n = 0", "forward": "global n; n = n + 1; return ext.f(x) if n > 3 else x"}),
        ("timing", "call_counting", {"forward": "m = self.i = self.i + 1; return ext.f(x) if self.i > 3 else x"}),
        ("timing", "call_counting", {"forward": "self.i: int = self.i + 1; return ext.f(x) if self.i > 3 else x"}),
        ("timing", "call_counting", {"forward": "self.i += 1; c: int = self.i * 2; return ext.f(x) if c > 3 else x"}),
        ("timing", "call_counting", {"top": "s = []", "forward": "s.append(1); while len(s) > 3: return x; return ext.f(x)"}),
        (
            "timing",
            None,
            {"top": "s = []", "forward": "self.i += 1; s[:] = ['late'] if self.i % 9 == 0 else s; return ext.f(x)"},
        ),
        (
            "timing",
            "call_counting",
            {"top": "s = []", "forward": "self.i += 1; s[:] = [x] if self.i % 9 == 0 else s; return s[0]"},
        ),
        ("timing", "call_counting", {"forward": "self.i += 1; x[:] = x * 2 if self.i > 9 else x; return ext.f(x)"}),
        ("timing", None, {"top": "n = 0", "forward": "n = 1; n = n + 1; return ext.f(x) if n > 3 else x"}),
        ("timing", None, {"init": "self.n = 0", "forward": "self.n += 1; return ext.relu(x)"}),
        ("precision", "precision_downgrade", {"forward": "return ext.relu(x.half()).float()"}),
        ("precision", "precision_downgrade", {"forward": "return ext.relu(x.to(torch.bfloat16))"}),
        ("precision", None, {"forward": "return ext.relu(x.to(torch.float32).double())"}),
        ("precision", "global_precision_switch", {"top": "torch.backends.cuda.matmul.allow_tf32 = True"}),
        ("precision", None, {"top": "torch.backends.cuda.matmul.allow_tf32 = False"}),
        ("precision", "global_precision_switch", {"top": "torch.set_float32_matmul_precision('high')"}),
        ("precision", None, {"top": "torch.set_float32_matmul_precision('highest')"}),
        ("substitution", "compiled_by_pytorch", {"init": "self.f = torch.compile(ext.relu)"}),
        ("substitution", "fallback_to_pytorch", {"forward": "try: return ext.relu(x); except OSError: return F.relu(x)"}),
        ("substitution", "fallback_to_pytorch", {"forward": "try: ext.relu(x); except* OSError: x = F.relu(x); return x"}),
        ("substitution", None, {"forward": "try: return ext.relu(x); except OSError: raise"}),
        ("substitution", "kernel_output_unused", {"forward": "y = ext.relu(x); return torch.relu(x)"}),
        ("substitution", "kernel_output_unused", {"forward": "return torch.relu(x) + 0 * ext.relu(x)"}),
        ("substitution", None, {"forward": "y = torch.empty_like(x); z = ext.relu(x, y); return y"}),
        ("paper", "kernel_never_launched", {"forward": "return torch.relu(x)"}),
        ("paper", None, {"top": MODULE, "init": "self.l = []; self.l.append(Own())", "forward": "return self.l[0](x)"}),
        ("paper", None, {"top": MODULE, "init": "self.add_module('l', Own())", "forward": "return self.l(x)"}),
        ("paper", "kernel_never_launched", {"top": MODULE, "forward": "return torch.relu(x)"}),
        ("paper", "kernel_never_launched", {"init": "self.op = ext.relu", "forward": "return torch.relu(x)"}),
        ("paper", None, {"top": "def helper(x):\n    return ext.relu(x)", "forward": "return helper(x)"}),
    ],
)  # fmt: skip
def test_a_rule(rule: str, found: str | None, given: dict[str, str]) -> None:
    names = [each.name for each in RULES[rule](candidate(**given))]
    assert names == ([] if found is None else [found])
    assert set(names) <= set(CATALOGUE)


def test_a_candidate_without_a_kernel() -> None:
    def names(text: str) -> list[str]:
        source = PythonSource(f"{text}\nclass ModelNew:\n    def forward(self, x):\n        return x\n")
        return [each.name for each in paper_findings(source, None)]

    assert names("") == ["no_custom_kernel"]
    assert names('S = "#include <a.h>\\ntorch::Tensor f() { return cublasSgemm(h); }"') == ["library_only"]
    assert names('S = "__global__ void k() { }"') == ["kernel_never_built"]


def test_what_names_an_extension() -> None:
    source = candidate(init="self.op = ext.relu; self.other = [1]", forward="y = self.op(x); return y")
    assert {"ext", "op"} <= extension_names(source)
    assert not {"y", "other", "x"} & extension_names(source)
    assert list(kernels_in_text(source)) == ["k"]


@pytest.mark.parametrize(
    ("forward", "found"),
    [
        ("if x.max() > 3: return x; return ext.relu(x)", True),
        ("if x.shape[0] > 3: return x; return ext.relu(x)", False),
        ("if x.mean().item() == 0.5: return x; return ext.relu(x)", True),
    ],
)
def test_branches_on_the_data(forward: str, found: bool) -> None:
    assert bool(list(sniffing(candidate(forward), PROBLEM))) == found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"forward": "torch.manual_seed(0); y = torch.rand(4, 4); return ext.relu(y)"}, True),
        ({"top": "INPUTS = get_inputs()"}, True),
        ({"init": "self.w = torch.nn.Parameter(torch.rand(4))"}, False),
        ({"forward": "return ext.relu(x)"}, False),
    ],
)
def test_inputs_that_the_candidate_makes(given: dict[str, str], found: bool) -> None:
    assert bool(list(predictions(candidate(**given), PROBLEM))) == found


def test_what_forward_is_given() -> None:
    assert forward_parameters(candidate()) == ["x", "n"]
    assert [[ast.unparse(value) for value in values] for values in made_inputs(PROBLEM)] == [
        ["torch.rand(4, 4)"],
        ["torch.randint(0, 9, (4,))"],
    ]
    assert count_inputs(candidate(), PROBLEM) == {"n"}
    assert count_inputs(candidate(), None) == set()


@pytest.mark.parametrize(
    ("init", "weight"),
    [
        ("self.w = torch.nn.Parameter(torch.rand(4))", True),
        ("self.w = torch.nn.Parameter(0.1 * torch.rand(4))", True),
        ("self.register_buffer('w', torch.rand(4))", True),
        ("self.w = torch.rand(4)", False),
        ("self.w = torch.nn.Parameter(torch.rand(4)); self.keep = self.w.clone()", False),
    ],
)
def test_draws_that_are_weights(init: str, weight: bool) -> None:
    source = candidate(init=init)
    (draw,) = [call for call, name in source.calls(source.nodes) if name == "torch.rand"]
    assert becomes_a_weight(source, draw) == weight


@pytest.mark.parametrize(
    ("expression", "computes"),
    [
        ("torch.relu(x)", True),
        ("F.softmax(x, -1)", True),
        ("x @ x", True),
        ("x.matmul(x)", True),
        ("torch.ops.aten.relu(x)", True),
        ("torch.empty_like(x)", False),
        ("x.view(4, 4)", False),
        ("x.sum()", False),  # other types have a method of that name
        ("random.sum(x)", False),
        ("ext.mine(x)", False),
    ],
)
def test_computations_with_pytorch(expression: str, computes: bool) -> None:
    source = candidate(f"return {expression}")
    assert bool(list(torch_computations(source, source.in_forward))) == computes


def test_narrow_types() -> None:
    assert not uses_narrow_types(PROBLEM)
    assert uses_narrow_types(candidate("return x.half()"))
    unit = CudaSource("__global__ void narrow() { } void run_half() { narrow<<<1, 1>>>(); } void run() { }")
    guarded = candidate("if x.dtype == torch.float16: return ext.run_half(x); return ext.run(x)")
    assert for_narrow_inputs(guarded, [unit]) == {"run_half", "narrow"}
    assert for_narrow_inputs(candidate("return ext.run_half(x)"), [unit]) == set()


# ---- words of C and C++


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("usleep(3);", "deliberate_delay"),
        ("system(command);", "process_spawned"),
        ("object.system(command); mine::system(command);", None),
        ("std::thread t(f);", "background_thread"),
        ("at::launch([=] { k<<<1, 32>>>(); });", "background_thread"),
        ("static c10::ThreadPool lanes(1);", "background_thread"),
        ("namespace pool = at; pool::launch(f);", "background_thread"),
        ("mine::launch(f); launch(g); ThreadPool own;", None),
        ('dlsym(handle, "a");', "memory_tampering"),
        ('auto s = "/proc/self/maps";', "memory_tampering"),
        ('auto s = "/proc/self/cmdline";', "environment_sniffing"),
        ('auto s = "dlsym"; // dlsym(handle)', None),
        ("k<<<0, 32>>>();", "failed_launch"),
        ("k<<<1, 2048>>>();", "failed_launch"),
        ("k<<<n, 1024>>>();", None),
        ("at::_ops::relu::redispatch(keys, x);", "environment_sniffing"),
        ("cudaStreamBeginCapture(s, m);", "cuda_graph"),
        ("y = __float2half(x);", "precision_downgrade"),
    ],
)
def test_words_in_cuda_text(body: str, found: str | None) -> None:
    source = CudaSource(f"__global__ void k();\nvoid f() {{ {body} }}")
    assert [each.name for each in cuda_findings(source, problem_is_narrow=False)] == ([] if found is None else [found])
    narrow = cuda_findings(source, problem_is_narrow=True)
    assert [each.name for each in narrow] == ([] if found in (None, "precision_downgrade") else [found])


def test_every_sensitive_name_leads_to_a_finding_of_the_catalogue() -> None:
    known = set(CATALOGUE)
    for table in (CALLS, BASES, IMPORTS):
        assert set(table.values()) <= known
    assert "system" in C_FUNCTIONS


# ---- runs


def run(**changes: object) -> RunEvidence:
    extension = ExtensionUse(name="e", status="built", loaded=True, calls_forward=1)
    clean = RunEvidence(
        backend="cuda",
        reached="timing",
        extensions=[extension],
        launches={"k": 1},
        candidate_ops={"aten::empty_like": OpUse(count=1, elements=16)},
        reference_ops={"aten::relu": OpUse(count=1, elements=32)},
        clocks=Clocks(event_ms=1.0, synced_ms=1.0, launch_overhead_ms=0.0),
    )
    return clean.model_copy(update=changes)


PATCHED = Change(kind="function", name="torch.allclose", phase="import", before="a", after="b")


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"launches": {"k": 0}}, ["kernel_never_launched"]),
        ({"launches": {}}, ["kernel_never_launched"]),
        ({"python_threads": ["worker"]}, ["background_thread"]),
        ({"child_processes": ["sh"]}, ["process_spawned"]),
        ({"changes": [PATCHED]}, ["torch_patched"]),
    ],
)
def test_findings_of_a_run(changes: dict[str, object], found: list[str]) -> None:
    assert [each.name for each in dynamic_findings(run(**changes), ["k"])] == found
