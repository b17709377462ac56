"""The mutants of `benchmarks/robust_mutants.py`, and how found ones, missed ones and those set aside are counted."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import robust_mutants

KERNEL = """
__global__ void tiles(const float* x, float* y, int n, int m) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        tile[i] = i < n ? x[i] : 0.0f;
        other[i] = i < n && i < m ? x[i] : 0.0f;
        // for (int i = 0; i < n; ++i)
    }
    __syncthreads();
    if (row < m) y[row] = rsqrtf(sum + 1e-5f);
}
"""


@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        ("bound_one_more", "if (row < m)", "if (row <= m)"),
        ("bound_one_less", "if (row < m)", "if (row < m - 1)"),
        ("no_bound", "if (row < m)", "if (true)"),
        ("loop_one_more", "x; i < n; i", "x; i <= n; i"),
        ("loop_one_less", "x; i < n; i", "x; i < n - 1; i"),
        ("tail_unguarded", "tile[i] = i < n ? x[i] : 0.0f;", "tile[i] = x[i];"),
        ("tail_half_guarded", "i < n && i < m ? x[i]", "i < n ? x[i]"),
        ("stride_fixed", "i += blockDim.x", "i += 256"),
        ("no_barrier", "__syncthreads();", ""),
        ("no_epsilon", "rsqrtf(sum + 1e-5f)", "rsqrtf(sum )"),
    ],
)
def test_a_rule_changes_one_place_of_the_code(rule: str, old: str, new: str) -> None:
    assert KERNEL.count(old) == 1
    assert robust_mutants.RULES[rule](KERNEL, random.Random(1)) == KERNEL.replace(old, new)


def test_a_stride_that_the_block_has_anyway_is_no_mutant() -> None:
    text = KERNEL + "tiles<<<1, 256>>>(x, y, n, m);"
    assert "i += 512" in str(robust_mutants.RULES["stride_fixed"](text, random.Random(1)))


def test_a_rule_without_a_place_makes_nothing() -> None:
    assert robust_mutants.RULES["no_atomic"](KERNEL, random.Random(1)) is None


def verdicts(name: str, passes_paper: bool, found: bool) -> str:
    """The rows of one candidate."""
    row = {"problem_id": name, "sample": 0, "message": "half: wrong", "seconds": 1.0, "conditions": None}
    paper = row | {"protocol": "paper", "functional_status": "correct" if passes_paper else "wrong_value"}
    robust = row | {"protocol": "robust", "status": "wrong_value" if found else "correct"}
    return f"{json.dumps(paper)}\n{json.dumps(robust)}\n"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of kernel a: one mutant found, one missed, one set aside, one that `paper` finds. Kernel b is blamed itself."""
    names = {
        "a~no_bound": (1, 1),
        "a~no_reset": (1, 0),
        "a~no_barrier": (1, 0),
        "a~no_atomic": (0, 1),
        "b~no_bound": (1, 1),
    }
    rows = [{"problem_id": name, "code": f"{name}\n"} for name in names]
    (tmp_path / "mutants.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "right.jsonl").write_text(
        "".join(json.dumps({"problem_id": name, "code": "a\n"}) + "\n" for name in "ab")
    )
    (tmp_path / "mutants.verdicts.jsonl").write_text(
        "".join(verdicts(name, bool(paper), bool(robust)) for name, (paper, robust) in names.items())
    )
    (tmp_path / "right.verdicts.jsonl").write_text(verdicts("a", True, False) + verdicts("b", True, True))
    monkeypatch.setattr(robust_mutants, "SET_ASIDE", tmp_path / "set_aside.jsonl")
    put_aside(tmp_path, "a~no_barrier", "ordered_anyway")
    return tmp_path


def put_aside(work: Path, name: str, reason: str) -> None:
    row = {"code": robust_mutants.digest(f"{name}\n"), "reason": reason, "why": "one thread"}
    (work / "set_aside.jsonl").write_text(json.dumps(row) + "\n")


def test_the_share_is_told_with_and_without_those_set_aside(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    robust_mutants.report(work)
    text = capsys.readouterr().out
    assert "found, of all that pass paper: 1 of 3" in text
    assert "found, without those set aside: 1 of 2" in text
    assert "missed: a~no_reset\n" in text
    assert "2 pass paper, 1 blamed by robust" in text
    assert "WRONG" not in text
    robust_mutants.missed(work)
    assert capsys.readouterr().out.startswith("a~no_reset ")


def test_one_that_is_set_aside_and_found_is_an_error_of_the_reading(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_aside(work, "a~no_bound", "same_value")
    robust_mutants.report(work)
    assert "WRONG: a~no_bound" in capsys.readouterr().out
    put_aside(work, "a~no_bound", "convenient")
    with pytest.raises(SystemExit, match="convenient"):
        robust_mutants.report(work)
