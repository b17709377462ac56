"""What follows from verdicts for the author of a kernel, and how it is printed."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from dice.kernels.page.page import Page, headline, make_page
from dice.kernels.page.text import LEGEND, quantity, render
from dice.kernels.records.explanation import Card, Explanation, KernelUse, Mismatch, Work
from dice.kernels.records.verdict import ConditionResult, Finding, Host, Protocol, Speedup, Status, Timing, Verdict

HOST = Host(gpu=None, driver=None, cuda=None, torch="2.9", cpu="a CPU", isolation=[])
WORK = Work(bytes=4_000_000, flop=2_000_000_000)
MISMATCH = Mismatch(
    where="output", shape=[4, 100], dtype="float32", total=400, wrong=16, unwritten=8, first=[0, 96], expected="1.5",
    got="nan", lowest=[0, 96], highest=[3, 99], remarks=["the last 4 columns of every row"], rows_per_cell=2,
    columns_per_cell=2, picture=["...??", "...##"],
)  # fmt: skip
CODE = 'source = """\n__global__ void k() {\n    int x = y;\n}\n"""\nrest = 1\n'


def verdict(status: Status = "correct", protocol: str = "paper", **fields: object) -> Verdict:
    given = {"problem_id": "model", "sample": 0, "code_sha256": "", "status": status, "functional_status": status}
    rest = {"stage": "done", "message": "", "protocol": protocol, "backend": "cpu", "trials": 5, "host": HOST}
    return Verdict.model_validate(given | rest | fields)


def page(*verdicts: Verdict) -> Page:
    return make_page("kernel.py", "model.py", CODE, verdicts)


def block(text: str, label: str) -> list[str]:
    """The lines of one labelled block."""
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(label))
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    return [line[10:] for line in lines[start:end]]


def test_the_headline_names_each_protocol() -> None:
    assert headline([verdict(), verdict(protocol="strict")]) == "correct under paper and strict"
    mixed = [verdict(), verdict("wrong_value", "strict")]
    assert headline(mixed) == "correct under paper, wrong_value under strict"
    assert page(*mixed).correct is False
    assert page(verdict()).correct is True


def test_the_first_failure_is_shown() -> None:
    made = page(
        verdict(message="no"), verdict("runtime_error", "strict", message="ValueError: odd (line 6, in forward)")
    )
    assert block(render(made), "error") == ["ValueError: odd (line 6, in forward)"]


def test_a_compile_error_has_the_authors_line() -> None:
    message = "cuda.cu:3:13: error: ‘y’ was not declared\n    3 |     int x = y;\n"
    made = page(verdict("compile_error", message=message))
    assert [(error.line, error.source) for error in made.errors] == [(3, "int x = y;")]
    assert block(render(made), "error")[0] == "line 3: ‘y’ was not declared"


def test_a_mismatch_is_drawn() -> None:
    text = render(page(verdict("wrong_value", message="output: ...", explanation=Explanation(mismatch=MISMATCH))))
    assert "error" not in text
    assert block(text, "where") == [
        "output, 4 x 100 float32: 16 of 400 elements (4 %)",
        "first at [0, 96]: expected 1.5, got nan",
        "within [0..3, 96..99]",
        "the last 4 columns of every row",
    ]
    assert "0..1  ...??\n" in text
    assert "2..3  ...##\n" in text
    assert LEGEND in text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"notes": ["data race in kernel k: proven by the order of threads"]}, "data race in kernel k"),
        (
            {"message": "RuntimeError: CUDA error: deadlock: 64 threads wait at a block barrier (line 3)"},
            "barrier: 64 thr",
        ),
        (
            {"message": "CUDA error: Assertion `x > 0' failed at cuda.cu:7, block 0"},
            "Assertion `x > 0' failed at cuda.cu:7",
        ),
        ({"message": "ended by SIGSEGV"}, "bounds"),
        ({"message": "CUDA error: an illegal memory access was encountered"}, "bounds"),
    ],
)
def test_hazards_are_told(fields: dict[str, Any], words: str) -> None:
    (found,) = page(verdict("runtime_error", **fields)).hazards
    assert words in found


def test_memory_that_was_not_written_is_a_hazard_and_a_text_that_looks_so_is_not() -> None:
    def hazards(source: Literal["static", "dynamic"]) -> list[str]:
        finding = Finding(
            name="unstable_output", rule="strict", source=source, evidence="differs", fatal={"paper": False}
        )
        return page(verdict(deception=[finding])).hazards

    assert hazards("dynamic") == ["memory read before it is written: differs"]
    assert hazards("static") == []


def test_no_race_is_claimed_only_where_one_was_looked_for() -> None:
    assert page(verdict()).hazards == []
    assert page(verdict(explanation=Explanation(work=WORK))).hazards == []
    tried = Explanation(orders_tried=True)
    assert "no data race" in page(verdict(explanation=tried)).hazards[0]
    proven = page(verdict(notes=["data race in kernel k: proven"], explanation=tried)).hazards
    assert not any("no data race" in text for text in proven)


def test_times_are_put_beside_the_card() -> None:
    timing, slower = Timing(median=2.0, mean=2.1, std=0.1, n=80), Timing(median=3.0, mean=3, std=0.1, n=80)
    made = page(
        verdict(
            protocol="strict", backend="cuda", runtime_ms=timing, reference_ms=slower,
            speedup=Speedup(median=1.5, ci_low=1.4, ci_high=1.6), launches={"k": 2},
            explanation=Explanation(
                work=WORK, card=Card(bytes_per_s=4e9, flop_per_s=None),
                kernels=[KernelUse(kernel="k", registers=40, shared_bytes=512, local_bytes=16, occupancy={128: 0.75})],
            ),
        )
    )  # fmt: skip
    text = render(made)
    assert block(text, "time") == [
        "strict: 2 ms (n = 80), the reference 3 ms (n = 80): 1.5 times as fast [1.4, 1.6]",
        "    2 GB/s, 50 % of the card's 4 GB/s",
        "    1 TFLOP/s",
    ]
    assert block(text, "kernels") == [
        "k: 2 launches a call",
        "k: 40 registers, 512 B of shared memory, 16 B of local memory (spills, or arrays)",
        "    occupancy by threads of a block: 128: 75 %",
    ]
    assert block(text, "work") == [
        "a call moves at least 4 MB (inputs, weights, outputs once), 2 GFLOP in products and convolutions"
    ]


def test_a_race_is_named_and_its_outputs_are_drawn() -> None:
    message = "unsupported_on_cpu: data race in kernel k (ascending and random differ); output: 3 of 9 elements differ"
    text = render(page(verdict("unsupported_on_cpu", message=message, explanation=Explanation(mismatch=MISMATCH))))
    assert block(text, "error") == ["unsupported_on_cpu: data race in kernel k (ascending and random differ)"]
    assert LEGEND in text


def test_findings_have_their_line_and_their_weight() -> None:
    fatal: dict[Protocol, bool] = {"paper": False, "strict": True}
    finding = Finding(
        name="identity_kernel", rule="strict", source="static", evidence="C++ line 3: int x = y;", fatal=fatal
    )
    made = page(verdict("deceptive", message="identity_kernel: ...", deception=[finding]))
    text = block(render(made), "findings")
    assert text[0].startswith("line 3: identity_kernel (fatal under strict): ")
    assert "error" not in render(made)


def test_the_json_is_the_page() -> None:
    made = page(verdict("wrong_value", explanation=Explanation(mismatch=MISMATCH, work=WORK)))
    data = json.loads(made.model_dump_json())
    assert data["explanation"]["mismatch"]["picture"] == MISMATCH.picture
    assert data["correct"] is False
    assert data["verdicts"][0]["status"] == "wrong_value"
    assert Page.model_validate(data) == made


def test_colour_is_only_where_it_is_asked_for() -> None:
    made = page(verdict())
    assert "\033" not in render(made)
    assert "\033[32mright\033[0m" in render(made, colour=True)
    assert "\033[31mWRONG\033[0m" in render(page(verdict("timeout")), colour=True)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (3.35e12, "3.35 TB"), (2.5e19, "2.5e+04 PB")]
)
def test_quantities(value: float, text: str) -> None:
    assert quantity(value, "B") == text


def test_the_conditions_that_break_a_kernel_are_listed() -> None:
    def result(name: str, outcome: str, *, decides: bool = True) -> ConditionResult:
        return ConditionResult(name=name, outcome=outcome, decides=decides, seed=9, detail="why")  # pyright: ignore[reportArgumentType]

    tried = [result("drawn", "right"), result("half", "broken"), result("padded_rows", "broken", decides=False)]
    made = page(verdict("wrong_value", protocol="robust", conditions=[*tried, result("twice", "refused")]))
    assert made.conditions == [
        "half: broken: why",
        "padded_rows: broken (a warning): why",
        "twice: refused: why",
        "right under 1 of 4; seed 9",
    ]
    assert "\nrobust    half: broken: why\n" in render(made)
    assert page(verdict()).conditions == []
