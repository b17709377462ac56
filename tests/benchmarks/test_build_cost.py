"""`benchmarks/build_cost.py`: what is compared with what."""

from __future__ import annotations

from typing import Any

import pytest
from build_cost import report


def fast(cpu_seconds: float, ok: bool) -> dict[str, Any]:
    status = "built" if ok else "compile_error"
    cost = {"cpu_seconds": cpu_seconds, "seconds": 2 * cpu_seconds}
    return {"ok": ok, "left": False, "status": status, "route": "split", "message": "", **cost}


def test_a_ratio_is_of_two_builds_in_one_place(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {"good": fast(50.0, True), "cheap": fast(50.0, False), "dear": fast(1.0, False)}
    stock = {
        "good": {"ok": True, "cpu_seconds": 80.0, "fast_cpu_seconds": 1.0, "message": ""},
        "cheap": {"ok": False, "cpu_seconds": 30.0, "fast_cpu_seconds": 2.0, "message": ""},
        "dear": {"ok": False, "cpu_seconds": 30.0, "fast_cpu_seconds": 4.0, "message": ""},
    }
    report("all", list(rows), rows, stock)
    said = capsys.readouterr().out
    assert " 80.00    80.00    80.00\n  built without stock: 1 of 1" in said
    assert "refused at a tenth of stock's cost or less: 1 of 2\n    dearer: dear: 4.00 of stock's 30.0" in said
    assert "1 of 3 within 2 s" in said
    assert "verdicts that differ: 0 of 3" in said


def test_verdicts_that_differ_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    report(
        "all",
        ["odd"],
        {"odd": fast(1.0, True)},
        {"odd": {"ok": False, "cpu_seconds": 30.0, "message": "no such name"}},
    )
    said = capsys.readouterr().out
    assert "verdicts that differ: 1 of 1\n    odd: stock refuses: no such name" in said
