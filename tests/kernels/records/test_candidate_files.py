"""Reading candidates: what is accepted, and what is refused with its place."""

import json

import pytest

from dice.errors import DiceError
from dice.kernels.problems.problem import Problem
from dice.kernels.records.candidate_files import make_jobs, read_candidates

PROBLEM = Problem(id="level1/19_ReLU", level=1, number=19, name="ReLU", code="reference", version="t")


def rows(tmp_path, *objects):
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps(o) + "\n" for o in objects))
    return path


def test_run_folder(tmp_path):
    (tmp_path / "level_1_problem_19_sample_3_kernel.py").write_text("x = 1\n")
    (tmp_path / "notes.txt").write_text("ignored")
    (job,) = make_jobs(read_candidates(tmp_path), [PROBLEM])
    assert (job.problem_id, job.sample, job.code, job.problem_code) == ("level1/19_ReLU", 3, "x = 1\n", "reference")


@pytest.mark.parametrize(
    "row",
    [
        {"problem_id": "level1/19_ReLU", "sample": 0, "code": "x"},
        {"problem_id": "level1/19", "sample_id": 0, "text": "```python\nx```"},
        {"level_id": 1, "task_id": 19, "ref_code": "r", "custom_code": "x"},
    ],
)
def test_rows_find_their_problem(tmp_path, row):
    (job,) = make_jobs(read_candidates(rows(tmp_path, row)), [PROBLEM])
    assert (job.problem_id, job.problem_code, (job.code or "").strip()) == ("level1/19_ReLU", "reference", "x")


def test_another_name_of_the_same_number_is_another_problem(tmp_path):
    """By its number alone it would be judged against a reference that the model was never shown."""
    path = rows(tmp_path, {"problem_id": "level1/19_Tanh", "code": "x"})
    with pytest.raises(DiceError, match=r":1: problem level1/19_Tanh .*; the one of this number is level1/19_ReLU"):
        make_jobs(read_candidates(path), [PROBLEM])


def test_pairs_bring_their_own_problem(tmp_path):
    path = rows(tmp_path, {"id": 7, "pytorch_code": "p", "cuda_code": "c"})
    (job,) = make_jobs(read_candidates(path), None)
    assert (job.problem_id, job.problem_code, job.code) == ("7", "p", "c")


def test_answer_without_code_is_a_job_without_code(tmp_path):
    path = rows(
        tmp_path, {"problem_id": "level1/19", "text": "sorry"}, {"problem_id": "level1/19", "sample": 1, "code": " "}
    )
    jobs = make_jobs(read_candidates(path), [PROBLEM])
    assert [job.code for job in jobs] == [None, None]
    assert "no fenced block" in jobs[0].no_code_reason


@pytest.mark.parametrize(
    ("objects", "needle"),
    [
        ([{"sample": 0, "code": "x"}], ":1: field 'problem_id'"),
        ([{"problem_id": "a", "code": 5}], ":1: field 'code' must be text"),
        ([{"problem_id": "a", "sample": -1, "code": "x"}], ":1: field 'sample'"),
        ([{"problem_id": "a"}], ":1: no field 'text'"),
        ([{"problem_id": "a", "code": "x"}, {"problem_id": "a", "code": "y"}], ":2: sample 0 of a was already given"),
        ([], "holds no candidate"),
    ],
)
def test_bad_rows(tmp_path, objects, needle):
    with pytest.raises(DiceError, match=needle):
        read_candidates(rows(tmp_path, *objects))


def test_unknown_places_and_problems(tmp_path):
    with pytest.raises(DiceError, match="no such file or folder"):
        read_candidates(tmp_path / "none")
    with pytest.raises(DiceError, match="no file named like"):
        read_candidates(tmp_path)
    path = rows(tmp_path, {"problem_id": "level2/1", "code": "x"})
    with pytest.raises(DiceError, match="level2/1 is not among the 1 problems"):
        make_jobs(read_candidates(path), [PROBLEM])
    with pytest.raises(DiceError, match="has no problem in its file"):
        make_jobs(read_candidates(path), None)
    twice = rows(tmp_path, {"problem_id": "level1/19", "code": "x"}, {"problem_id": "level1/19_ReLU", "code": "x"})
    with pytest.raises(DiceError, match="given twice"):
        make_jobs(read_candidates(twice), [PROBLEM])


def test_a_null_answer_is_no_code_and_not_a_bad_file(tmp_path):
    path = tmp_path / "published.jsonl"
    rows = [{"level_id": 1, "task_id": 2, "ref_code": "x", "custom_code": None}, {"problem_id": "a", "text": None}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = read_candidates(path)
    assert (first.code, first.no_code_reason) == (None, "the row has no answer ('custom_code' is null)")
    assert (second.code, second.no_code_reason) == (None, "the row has no answer ('text' is null)")
    path.write_text(json.dumps({"problem_id": "a", "answer": None}) + "\n")
    with pytest.raises(DiceError, match="no field"):
        list(read_candidates(path))
