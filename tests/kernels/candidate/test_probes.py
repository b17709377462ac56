"""Probes against real patches, real operators and real outputs, each with a clean twin that must stay silent."""

from __future__ import annotations

import builtins
import sys
import threading
import time
from types import ModuleType

import pytest
import torch

from dice.kernels.candidate.probes import CallCounter, OpRecorder, Snapshot, compare, output_facts, python_threads


def names(before) -> set[str]:
    return {change.name for change in compare(before, "import")}


def test_nothing_changed_is_nothing_reported() -> None:
    before = Snapshot()
    torch.nn.Linear(3, 3)(torch.randn(2, 3)).relu()
    assert names(before) == set()


@pytest.mark.parametrize(
    ("target", "name", "value", "expected"),
    [
        (torch, "allclose", lambda *a, **k: True, "torch.allclose"),
        (torch.nn.functional, "relu", torch.nn.functional.silu, "torch.nn.functional.relu"),
        (torch.cuda.Event, "elapsed_time", lambda self, other: 0.001, "torch.cuda.Event.elapsed_time"),
        (torch.cuda, "synchronize", lambda *a: None, "torch.cuda.synchronize"),
        (time, "perf_counter", lambda: 0.0, "time.perf_counter"),
        (torch.nn.Module, "load_state_dict", lambda *a, **k: None, "torch.nn.Module.load_state_dict"),
    ],
)
def test_replaced_functions_are_named(monkeypatch, target, name, value, expected) -> None:
    before = Snapshot()
    monkeypatch.setattr(target, name, value)
    assert expected in names(before)


def test_what_says_what_is_guarded_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Snapshot()
    monkeypatch.setattr(torch, "relu", torch.tanh)
    kept = {name: getattr(builtins, name) for name in ("callable", "len", "map", "all", "vars")}
    try:
        for name in kept:
            setattr(builtins, name, lambda *_: False)
        found = compare(before, "import")
    finally:
        builtins.__dict__.update(kept)
    assert {change.name for change in found} == {"torch.relu", *(f"builtins.{name}" for name in kept)}


def test_what_is_gone_or_another_equal_object_is_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    class Alike:
        def __eq__(self, other: object) -> bool:
            return True

        def __call__(self) -> None: ...

        __hash__ = None  # pyright: ignore[reportAssignmentType]

    before = Snapshot()
    monkeypatch.delattr(torch, "relu")
    monkeypatch.setattr(torch, "tanh", Alike())
    monkeypatch.setitem(sys.modules, "statistics", Alike())
    assert names(before) == {"torch.relu", "torch.tanh", "sys.modules[statistics]"}


def test_what_is_put_back_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Snapshot()
    with monkeypatch.context() as patch:
        patch.delattr(torch, "relu")
    assert list(vars(torch))[-1] == "relu"
    assert names(before) == set()


def test_a_swapped_code_object_is_a_change() -> None:
    function = torch.nn.functional.relu
    before, code = Snapshot(), function.__code__
    try:
        function.__code__ = torch.nn.functional.relu6.__code__
        assert names(before) == {"torch.nn.functional.relu"}
    finally:
        function.__code__ = code


def test_flags_modules_and_environment(monkeypatch) -> None:
    before = Snapshot()
    monkeypatch.setitem(sys.modules, "statistics", ModuleType("statistics"))
    monkeypatch.setenv("LD_PRELOAD", "/tmp/x.so")
    torch.set_float32_matmul_precision("medium")
    try:
        found = names(before)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert {"sys.modules[statistics]", "LD_PRELOAD", "torch.float32_matmul_precision"} <= found
    assert not any(name.startswith("torch.nn") for name in found)


def test_operators_and_their_sizes() -> None:
    layer, x = torch.nn.Linear(4, 8), torch.randn(2, 4)
    with torch.no_grad(), OpRecorder() as recorded:
        layer(x).view(-1).relu()
    assert recorded.ops["aten::addmm"].count == 1
    assert recorded.ops["aten::addmm"].bias == 16
    assert recorded.ops["aten::addmm"].elements == 8 + 8 + 32 + 16
    assert recorded.ops["aten::relu"].elements == 32


a, b = torch.rand(3, 5), torch.rand(5, 7)
batch, image = torch.rand(2, 4, 6, 8), torch.rand(2, 3, 9, 9)
PRODUCTS = {
    "matrices": (lambda: a @ b, 3 * 5 * 7),
    "a layer": (lambda: torch.nn.functional.linear(a, b.t(), b[0]), 3 * 5 * 7),
    "complex": (lambda: (a + 0j) @ (b + 0j), 4 * 3 * 5 * 7),
    "expanded": (lambda: torch.bmm(a.expand(6, 3, 5), b.expand(6, 5, 7)), 6 * 3 * 5 * 7),
    "convolution": (lambda: torch.nn.functional.conv2d(image, torch.rand(4, 3, 2, 2)), 2 * 4 * 8 * 8 * 3 * 2 * 2),
    "attention": (lambda: torch.nn.functional.scaled_dot_product_attention(batch, batch, batch), 2 * 2 * 4 * 6 * 6 * 8),
    "sparse": (lambda: torch.sparse.mm(a.to_sparse(), b), None),  # whatever its formula makes of it
    "no product": (lambda: a * 2, 0),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_multiplications_of_products(case: str) -> None:
    make, expected = PRODUCTS[case]
    with torch.no_grad(), OpRecorder() as recorded:
        make()
    assert expected is None or sum(use.products for use in recorded.ops.values()) == expected


query, key, value = torch.rand(3, 2, 4, 40, 8)
LARGEST = {
    "scores": (lambda: torch.nn.functional.scaled_dot_product_attention(query, key, value), 2 * 4 * 40 * 40),
    "columns": (lambda: torch.nn.functional.conv2d(image, torch.rand(4, 3, 2, 2)), 2 * 8 * 8 * 3 * 2 * 2),
    "columns of groups": (
        lambda: torch.nn.functional.conv2d(image, torch.rand(6, 1, 2, 2), groups=3),
        2 * 8 * 8 * 3 * 4,
    ),
    "columns to add": (lambda: torch.nn.functional.conv_transpose2d(image, torch.rand(3, 4, 2, 2)), 2 * 9 * 9 * 4 * 4),
    "a factor": (lambda: a * a[:1], 15),
}


@pytest.mark.parametrize("case", LARGEST)
def test_the_largest_tensor_of_an_operator_may_be_within_it(case: str) -> None:
    make, expected = LARGEST[case]
    with torch.no_grad(), OpRecorder() as recorded:
        make()
    names = ("attention", "convolution", "mul")
    assert [use.largest for name, use in recorded.ops.items() if any(part in name for part in names)] == [expected]


def test_weights_of_a_norm_are_steps() -> None:
    with torch.no_grad(), OpRecorder() as recorded:
        torch.nn.functional.layer_norm(a, (5,), b[0, :5], b[1, :5])
        torch.nn.functional.group_norm(a, 1)
    statistics = 2 * 3
    assert recorded.ops["aten::native_layer_norm"].bias == 2 * (15 + statistics)
    assert recorded.ops["aten::native_group_norm"].bias == 0


def test_numbers_of_a_sparse_tensor_count() -> None:
    values, places = torch.ones(50, 4), torch.zeros(1, 50, dtype=torch.long)
    with torch.no_grad():
        sparse = torch.sparse_coo_tensor(places, values, (3, 4))
        with OpRecorder() as recorded:
            sparse.coalesce()
    assert recorded.ops["aten::_coalesce"].elements == 200 + 4  # 50 rows of 4 become one


def test_calls_into_a_module_are_counted() -> None:
    module = ModuleType("extension")
    module.__dict__["add"] = lambda a, b: a + b
    counter = CallCounter(module)
    assert module.add(1, 2) == 3
    assert counter.calls == 1


class Lazy(torch.Tensor):
    pass


def test_output_facts() -> None:
    x, module = torch.randn(4), torch.nn.Linear(4, 4)
    clean = output_facts([x + 1, module.weight, x.view(2, 2)])
    assert clean.foreign_types == []
    assert clean.instance_attributes == []

    patched = x + 1
    vars(patched)["cpu"] = lambda: x
    odd = output_facts([x.view(2, 2), (x + 1).as_subclass(Lazy), patched])
    assert odd.foreign_types == [f"{__name__}.Lazy"]
    assert odd.instance_attributes == ["cpu"]


def test_output_facts_do_not_run_overrides() -> None:
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args, **kwargs):
            raise AssertionError("the candidate's code ran")

    facts = output_facts(torch.ones(2).as_subclass(Loud))
    assert len(facts.foreign_types) == 1


def test_python_threads_are_seen() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, name="filler", daemon=True)
    assert "filler" not in python_threads()
    thread.start()
    assert "filler" in python_threads()
    stop.set()
    thread.join()
    assert "filler" not in python_threads()
