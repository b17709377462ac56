"""The reports of leaks, the command that writes and prints them, and the operators that nothing is trained on."""

import json
from collections import Counter

import pytest
import yaml
from test_leakage import program

from dice.cli import main
from dice.data.leakage.heldout import PLACE
from dice.data.leakage.index import leak_index
from dice.data.leakage.report import Counts, read_report
from dice.data.leakage.strata import place, traced_anew
from dice.data.pair import read_pairs
from dice.data.synthetic.config import SyntheticConfig
from dice.data.synthetic.generator import generate
from dice.jsonl import write_jsonl
from dice.kernels.api import Problem, load_mini
from dice.manifest import manifest_path

EXAM = Problem(id="level1/1_Tanh", level=1, number=1, name="Tanh", code=program("torch.tanh(x)"), version="t")
ROWS = {
    "same": "x.tanh()",
    "held_out": "F.softplus(x) * 3",
    "fine": "torch.sin(x) + torch.cos(x)",
    "broken": "torch.no_such_function(x)",
    "by hand": "(torch.exp(x) - torch.exp(-x)) / (torch.exp(x) + torch.exp(-x))",
}


@pytest.fixture
def written(tmp_path):
    """The rows above through `dice leaks`."""
    write_jsonl(tmp_path / "exam.jsonl", [EXAM])
    write_jsonl(
        tmp_path / "programs.jsonl",
        [{"id": name, "pytorch_code": program(text), "cuda_code": "", "source": "t"} for name, text in ROWS.items()],
    )
    out = tmp_path / "kept.jsonl"
    command = ["leaks", "--data", str(tmp_path / "programs.jsonl"), "--out", str(out), "--quiet"]
    assert main([*command, "--benchmark", str(tmp_path / "exam.jsonl")]) == 0
    return out


def test_programs_that_leak_are_left_out_and_reported_by_problem_and_rule(written):
    assert [row["id"] for row in map(json.loads, written.read_text().splitlines())] == ["fine", "broken"]
    report = read_report(f"{written}.leaks.json")
    assert (report.problems, report.done, report.counts.checked) == (1, "dropped", 5)
    assert report.counts.found == {
        "level1/1_Tanh": Counter(graph=1, outputs=1),
        "heldout/softplus": Counter(heldout=1),
    }
    assert {row["id"]: row["kind"] for row in report.dropped} == {
        "same": "graph", "by hand": "outputs", "held_out": "heldout",
    }  # fmt: skip
    assert report.counts.operators == Counter(sin=1, cos=1, add=1)
    assert report.counts.unjudged.total() == 1
    assert "no_such_function" in next(iter(report.counts.unjudged))
    extra = json.loads(manifest_path(written).read_text())["extra"]
    assert (extra["rows"], extra["kept"]) == (5, 2)


def test_a_report_is_printed(written, capsys):
    assert main(["leaks", "--show", str(written.parent)]) == 0
    said = capsys.readouterr().out
    assert "kept.jsonl: 3 of 5 programs leak, dropped" in said
    assert "2  level1/1_Tanh: graph 1, outputs 1" in said
    assert "1  heldout/softplus: heldout 1" in said
    assert "compared by text alone" in said


def test_leaks_can_stay_and_be_reported(written):
    folder = written.parent
    out = folder / "all.jsonl"
    files = ["--data", str(folder / "programs.jsonl"), "--out", str(out), "--benchmark", str(folder / "exam.jsonl")]
    assert main(["leaks", *files, "--leakage", "report", "--quiet"]) == 0
    assert len(out.read_text().splitlines()) == 5
    assert read_report(f"{out}.leaks.json").counts.leaks == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--show", "/nowhere/x.leaks.json"], "not a report of leaks"),
        (["--show", "{tmp}"], "below this folder"),
        (["--show", "{tmp}", "--data", "x"], "without --data"),
        (["--quiet"], "data"),
    ],
)
def test_bad_requests_are_one_sentence(tmp_path, capsys, arguments, message):
    assert main(["leaks", *(text.format(tmp=tmp_path) for text in arguments)]) == 2
    assert message in capsys.readouterr().err


def test_counts_of_parts_add_up():
    one = Counts(2, {"a": Counter(graph=1)}, Counter(), Counter(add=1))
    one.add(Counts(3, {"a": Counter(outputs=1), "b": Counter(text=2)}, Counter(why=1), Counter(add=2, mul=1)))
    assert one == Counts(
        5, {"a": Counter(graph=1, outputs=1), "b": Counter(text=2)}, Counter(why=1), Counter(add=3, mul=1)
    )
    assert one.leaks == 4
    assert one.rules == Counter(graph=1, outputs=1, text=2)


HELD = {
    "softplus": "torch.log1p(torch.exp(x + 1))",
    "gelu_tanh": "nn.GELU(approximate='tanh')(x)",
    "relu6": "torch.sin(x).clamp(0, 6)",
    "hardswish": "x * (x + 3).clamp(0, 6) / 6",
    "argmax": "x.max(dim=0)[1]",
    "log_softmax": "torch.softmax(x, 1).log()",
    "cross_entropy": "F.cross_entropy(x, torch.arange(4))",
    "kl_div": "(torch.sigmoid(x) * (torch.sigmoid(x).log() - x)).sum(-1)",
    "cosine_similarity": "F.cosine_similarity(x, x.flip(0), dim=1)",
    "smooth_l1": "nn.SmoothL1Loss()(x, x.flip(0))",
    "avg_pool": "nn.AvgPool1d(2)(x)",
    "lower_triangle": "x.tril() @ x.T",
    "group_norm": "nn.GroupNorm(2, 6)(x)",
    "gru_gates": "nn.GRUCell(6, 6)(x, x.flip(0))",
    "lstm_gates": "nn.LSTMCell(6, 6)(x, (x, x))[0]",
}
NOT_HELD = ["F.gelu(x)", "F.silu(x)", "x.clamp(0, 5)", "x.max(dim=0)[0]", "torch.softmax(x, 1)", "F.mse_loss(x, x * 2)",
            "F.max_pool1d(x, 2)", "F.layer_norm(x, (6,))", "torch.exp(x) + 1", "torch.log(x.abs() + 1)"]  # fmt: skip


def test_at_least_twelve_operators_are_held_out_and_each_has_a_case_here():
    assert yaml.safe_load(PLACE.read_text()).keys() == HELD.keys()
    assert len(HELD) >= 12


@pytest.mark.parametrize("name", HELD)
def test_a_held_out_operator_is_found_in_another_spelling(name):
    leak = leak_index([]).check(program(HELD[name]))
    assert leak is not None
    assert (leak.kind, name in leak.evidence) == ("heldout", True)


@pytest.mark.parametrize("text", NOT_HELD)
def test_what_is_near_a_held_out_operator_is_none(text):
    assert leak_index([]).check(program(text)) is None


def test_the_generator_draws_no_held_out_operator_once_it_is_checked():
    """By the words of its programs, since these name operators as people do."""
    config = SyntheticConfig(scale="tiny", families=("softplus", "gelu_tanh", "argmax", "sin"), level_weights=(1, 0, 0))
    index = leak_index([])
    words = [generate(config, 3, number, index.leaks).pytorch_code for number in range(12)]
    assert not [code for code in words if "softplus" in code.lower() or "tanh" in code or "argmax" in code]
    assert index.counts.found.keys() == {"heldout/softplus", "heldout/gelu_tanh", "heldout/argmax"}


def test_every_held_out_operator_is_in_the_mini_benchmark():
    index = leak_index([])
    leaks = [index.check(problem.code) for problem in load_mini("cpu")]
    found = " ".join(leak.evidence.removeprefix("applies ").replace(",", "") for leak in leaks if leak).split()
    assert set(found) == set(HELD)


@pytest.mark.parametrize(
    ("text", "stratum", "untrained"),
    [
        ("torch.tanh(x)", "same operator seen", ()),
        ("torch.tanh(x) + 1", "composition unseen", ()),
        ("torch.tanh(torch.tanh(x))", "composition unseen", ()),
        ("torch.tanh(x).sinh()", "operator never trained", ("sinh",)),
        ("F.gelu(x, approximate='tanh')", "operator never trained", ("gelu_tanh",)),
        ("torch.no_such_function(x)", "not traced", ()),
    ],
)
def test_strata_follow_from_the_traced_operators(text, stratum, untrained):
    placed = place(traced_anew(program(text)), {"tanh", "add", "gelu"})
    assert (placed.stratum, placed.untrained) == (stratum, untrained)


def test_the_report_of_drawn_pairs_counts_what_was_drawn_anew(tmp_path):
    out = tmp_path / "pairs.jsonl"
    assert main(["synth", "--n", "30", "--seed", "4", "--scale", "tiny", "--quiet", "--out", str(out)]) == 0
    report = read_report(f"{out}.leaks.json")
    assert report.done == "drawn anew"
    assert report.problems == 72
    assert report.counts.checked == 30 + report.counts.leaks
    assert report.counts.operators
    index = leak_index(load_mini("cpu"))
    assert not [row.id for row in read_pairs(out)[0] if index.leaks(row.pytorch_code)]
