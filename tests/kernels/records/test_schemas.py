"""What records take and refuse, and that each survives its JSON line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from dice.config import parse_config
from dice.errors import DiceError, HarnessError
from dice.jsonl import read_jsonl, write_jsonl
from dice.kernels.records.evidence import (
    Access,
    Change,
    Clocks,
    ExperimentResult,
    ExtensionUse,
    OpUse,
    OutputFacts,
    RunEvidence,
)
from dice.kernels.records.extension import SOURCE_CHARACTERS, BuildResult, ExtensionRequest, SourceFile
from dice.kernels.records.failed import failed_verdicts
from dice.kernels.records.job import Job, Judging, Limits
from dice.kernels.records.object_facts import append_facts, object_facts
from dice.kernels.records.verdict import BuildInfo, Finding, Host, Speedup, Timing, Verdict

HOST = Host(gpu="g", driver=None, cuda="13", torch="2", cpu="c", isolation=["rlimit_as"])
TIMING = Timing(median=1.0, mean=1.5, std=0.1, n=3)
VERDICT = Verdict(
    problem_id="level1/1 é \ud800",
    sample=3,
    code_sha256="0" * 64,
    status="deceptive",
    functional_status="correct",
    stage="deception",
    message="line\nline",
    protocol="strict",
    backend="cuda",
    trials=5,
    max_abs_error=0.0,
    runtime_ms=TIMING,
    reference_ms=TIMING,
    speedup=Speedup(median=1.1, ci_low=None, ci_high=1.2),
    deception=[
        Finding(name="n", rule="paper_2", source="dynamic", evidence="e", fatal={"paper": True, "strict": False})
    ],
    launches={"k": 2},
    build=BuildInfo(path="split", seconds=1.0, cpu_seconds=2.0, cached=False, extensions=1, loaded=1, fallbacks=["a"]),
    host=HOST,
    phase_seconds={"import": 0.5},
)
EVIDENCE = RunEvidence(
    backend="cpu",
    reached="forward",
    extensions=[ExtensionUse(name="m", status="built", loaded=True, phase="import", calls_forward=1)],
    launches={"k": 1},
    candidate_ops={"aten::add": OpUse(count=1, elements=8)},
    changes=[Change(kind="flag", name="n", phase="init", before="a", after="b")],
    accesses=[Access(event="open:w", detail="f", phase="timing", line=3)],
    outputs=OutputFacts(foreign_types=["T"]),
    experiments=[ExperimentResult(name="fresh_weights", outcome="stale")],
    clocks=Clocks(event_ms=1.0, synced_ms=1.0, launch_overhead_ms=0.1, per_call_ms=[1.0]),
)
REQUEST: dict[str, Any] = {"kind": "load_inline", "name": "m"}


@pytest.mark.parametrize(
    "row",
    [
        VERDICT,
        EVIDENCE,
        Job(problem_id="a", problem_code="p", sample=0, code=None, no_code_reason="why"),
        ExtensionRequest(**REQUEST, cuda_sources=("s",), functions=(("f", "doc"),), with_cuda=True),
        BuildResult(status="built", key="k", route="split", fallbacks=["stock: why"]),
    ],
    ids=lambda row: type(row).__name__,
)
def test_a_record_survives_its_line(tmp_path: Path, row: BaseModel) -> None:
    write_jsonl(tmp_path / "rows", [row, row])
    assert list(read_jsonl(tmp_path / "rows", type(row))) == [row, row]
    with pytest.raises(ValidationError):
        type(row).model_validate(row.model_dump() | {"one_more": 1})


@pytest.mark.parametrize(
    ("record", "field", "value"),
    [
        (VERDICT, "status", "fine"),
        (VERDICT, "stage", "finished"),
        (VERDICT, "protocol", "loose"),
        (VERDICT, "backend", "tpu"),
        (VERDICT, "host", None),
        (VERDICT, "runtime_ms", 1.0),
        (VERDICT.deception[0], "rule", "paper_5"),
        (VERDICT.deception[0], "fatal", {"loose": True}),
        (EVIDENCE, "reached", "backward"),
        (EVIDENCE.extensions[0], "status", "correct"),
        (EVIDENCE.changes[0], "kind", "other"),
        (EVIDENCE.experiments[0], "outcome", "maybe"),
        (OpUse(count=1, elements=1), "count", -1),
        (OpUse(count=1, elements=1), "elements", 1 << 53),
        (BuildResult(status="built", key="k", route="cpu"), "status", "correct"),
        (BuildResult(status="built", key="k", route="cpu"), "launches", "many"),
    ],
)
def test_what_a_record_refuses(record: BaseModel, field: str, value: object) -> None:
    assert field in type(record).model_fields
    with pytest.raises(ValidationError, match=field):
        type(record).model_validate(record.model_dump() | {field: value})


def test_words_of_a_candidate_are_cut() -> None:
    change = Change(kind="flag", name="n" * 5000, phase="init", before="b" * 4000, after="")
    assert (len(change.name), len(change.before)) == (4000, 4000)
    assert OpUse(count=(1 << 53) - 1, elements=0).bias == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "jit"),
        ("name", "n" * 201),
        ("name", "a\0b"),
        ("cpp_sources", ("",) * 501),
        ("cuda_sources", ("x" * (SOURCE_CHARACTERS + 1),)),
        ("cuda_sources", ("x" * (SOURCE_CHARACTERS // 2 + 1),) * 2),
        ("cpp_sources", ("x" * (SOURCE_CHARACTERS // 2 + 1),) * 2),
        ("functions", (("f", "x" * (SOURCE_CHARACTERS // 2 + 1)),) * 2),
        ("headers", tuple({"name": n, "text": "x" * (SOURCE_CHARACTERS // 2 + 1)} for n in ("a", "b"))),
        ("functions", (("f", "d" * (SOURCE_CHARACTERS + 1)),)),
        ("functions", (("f", ""),) * 10_001),
        ("functions", (("f",),)),
        ("extra_cflags", ("-O3",) * 257),
        ("extra_ldflags", ("a" * 4097,)),
        ("extra_cflags", ("-D\0",)),
        ("extra_cuda_cflags", ("a\0b",)),
        ("files", ({"name": "a.cu", "text": ""},) * 2),
        ("files", ({"name": "a", "text": ""}, {"name": "a/b.cu", "text": ""})),
        ("files", tuple({"name": f"{n}.cu", "text": ""} for n in range(601))),
        ("anything", 1),
    ],
)
def test_what_a_request_may_not_ask(field: str, value: object) -> None:
    with pytest.raises(ValidationError):
        ExtensionRequest.model_validate(REQUEST | {field: value})


def test_what_a_request_may_ask() -> None:
    half = "x" * (SOURCE_CHARACTERS // 2)
    ExtensionRequest(**REQUEST, cpp_sources=(half,), cuda_sources=(half,))
    ExtensionRequest(
        kind="load", name="n" * 200, files=(SourceFile(name="a/b.cu", text=""), SourceFile(name="a/c", text=""))
    )
    header = {"name": "a.cu", "text": ""}
    with pytest.raises(ValidationError, match="Mi characters"):
        ExtensionRequest.model_validate({**REQUEST, "cpp_sources": (half,), "cuda_sources": (half, "x")})
    with pytest.raises(ValidationError, match="two files of one name"):
        ExtensionRequest.model_validate({"kind": "load", "name": "m", "files": [header], "headers": [header]})


def test_a_request_is_known_by_all_but_its_name() -> None:
    one = ExtensionRequest(**REQUEST, cuda_sources=("a", "b"))
    assert one.digest() == one.model_copy(update={"name": "other"}).digest()
    others: list[dict[str, Any]] = [
        {"cuda_sources": ("ab",)},
        {"cuda_sources": ("b", "a")},
        {"cpp_sources": ("a", "b"), "cuda_sources": ()},
        {"functions": ()},
        {"extra_cflags": ("-O3",)},
        {"with_cuda": False},
        {"is_python_module": False},
        {"kind": "load"},
    ]
    digests = {one.digest(), *(one.model_copy(update=change).digest() for change in others)}
    assert len(digests) == 1 + len(others)


@pytest.mark.parametrize(
    ("config", "field", "value"),
    [
        (Limits, "import_timeout_s", 0),
        (Limits, "memory_gib", -1),
        (Limits, "processes", 1),
        (Limits, "timeout_s", 3),
        (Judging, "protocols", ()),
        (Judging, "protocols", ("loose",)),
        (Judging, "correctness_trials", 0),
        (Judging, "timing_trials", 0),
        (Judging, "warmup_trials", -1),
        (Judging, "strict_rounds", 0),
    ],
)
def test_settings_out_of_bounds(config: type, field: str, value: object) -> None:
    with pytest.raises(DiceError, match=field):
        parse_config(config, {field: value}, "settings")


def test_a_candidate_that_never_ran_has_a_verdict_under_each_protocol() -> None:
    job = Job(problem_id="a", problem_code="p", sample=2, code="x")
    found = failed_verdicts(job, "no_code", "extract", "why", Judging(protocols=("strict", "paper")), "cuda")
    assert [verdict.protocol for verdict in found] == ["strict", "paper"]
    for verdict in found:
        assert (verdict.problem_id, verdict.sample, verdict.code_sha256) == ("a", 2, job.code_sha256)
        assert (verdict.status, verdict.functional_status, verdict.stage) == ("no_code", "no_code", "extract")
        assert (verdict.message, verdict.backend, verdict.trials, verdict.runtime_ms) == ("why", "cuda", 0, None)


def test_the_facts_behind_an_object(tmp_path: Path) -> None:
    path = tmp_path / "m.so"
    path.write_bytes(b"\x7fELF and the rest")
    with pytest.raises(HarnessError, match="not an object of the build cache"):
        object_facts(path)
    append_facts(path, {"old": True})
    append_facts(path, {"kernels": ["é"], "n": 2})
    assert object_facts(path) == {"kernels": ["é"], "n": 2}
    assert path.read_bytes().startswith(b"\x7fELF and the rest")
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], b"[" + whole[-12:], whole[:-12] + (1 << 20).to_bytes(4, "little") + whole[-8:]):
        path.write_bytes(damaged)
        with pytest.raises(HarnessError):
            object_facts(path)
    with pytest.raises(HarnessError, match="missing or damaged"):
        object_facts(tmp_path / "none.so")
