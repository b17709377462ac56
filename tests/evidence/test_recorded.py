"""A recorded study makes its own tables again, is audited down to a kernel, and shows every change."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from pathlib import Path

import pytest
from small_study import KERNEL, edited, edited_json, write_study

from dice.cli import main
from dice.errors import DiceError
from dice.evidence.audit import audit
from dice.evidence.crate import write_crate
from dice.evidence.record import record
from dice.evidence.recording import Record, read_record, store, unpack
from dice.evidence.regenerate import regenerate

FOLDER = Path("results/recorded/tiny")
CELL = "DICE:l1_exec"


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """A study with its recorded folder."""
    place = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        write_study()
        record("results", FOLDER)
    return place


@pytest.fixture
def clone(study, tmp_path, monkeypatch) -> Path:
    """What a fresh clone has: the recorded folder alone."""
    shutil.copytree(study / FOLDER, tmp_path / FOLDER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def archived(archive: Path) -> dict[str, bytes]:
    """The files of an archive."""
    with tarfile.open(archive) as tar:
        return {one.name: data.read() for one in tar if (data := tar.extractfile(one)) is not None}


def inside(path: str) -> tuple[Path, str]:
    """The archive of the recorded study that has a file, and its name there."""
    top, _, name = path.partition("/")
    return FOLDER / f"{top}.tar.xz", name


def repack(path: str, old: str, new: str) -> None:
    """Another text in one file of an archive."""
    archive, changed = inside(path)
    files = archived(archive)
    assert old.encode() in files[changed]
    files[changed] = files[changed].replace(old.encode(), new.encode())
    with tarfile.open(archive, "w:xz") as tar:
        for name, data in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(data)
            tar.addfile(header, io.BytesIO(data))


def test_every_report_comes_out_again_byte_for_byte(study, clone, capsys):
    assert main(["regenerate", "--out", "build"]) == 0
    said = capsys.readouterr().out
    made = [line.split()[1] for line in said.splitlines()[:-1]]
    scores = ["results/scores/8B-base.json", "results/scores/8B-dice.json"]
    kinds = {"check": ("csv", "md"), "claims": ("csv", "pdf", "png"), "pairs": ("csv",)}
    kinds |= {"figure1": ("csv", "pdf", "png"), "figure6": ("csv", "pdf", "png"), "table1": ("csv", "tex")}
    reports = [f"results/{name}.{kind}" for name, found in kinds.items() for kind in found]
    assert sorted(made) == sorted(scores + reports)
    for path in made:
        assert (clone / "build" / "tiny" / path).read_bytes() == (study / path).read_bytes()
    assert said.splitlines()[-1] == f"{FOLDER}: 16 files made again in build/tiny, all the same."


def test_the_folder_has_the_evidence_and_leaves_weights_and_data_out(study):
    kept = read_record(study / FOLDER).files
    out = {path for path, one in kept.items() if one.left_out}
    weights = {f"results/models/8B-{unit}/model.safetensors" for unit in ("base", "dice")}
    assert out == {"results/data/pairs.jsonl", *weights}
    assert not list((study / FOLDER).rglob("*.safetensors"))
    for path, one in kept.items():
        assert one.sha256 == hashlib.sha256((study / path).read_bytes()).hexdigest()
        assert one.bytes == (study / path).stat().st_size
    assert all(file.is_file() for file in (study / FOLDER).iterdir())
    assert set(archived(study / FOLDER / "outside.tar.xz")) == {"reported.csv"}
    for path in ("models/8B-dice/history.jsonl", "generations/8B-dice/seed0.jsonl", "scores/8B-dice.json"):
        archive, name = inside(path)
        assert archived(study / archive)[name] == (study / "results" / path).read_bytes()


def test_training_data_come_along_where_they_are_asked_for(study, tmp_path, monkeypatch):
    monkeypatch.chdir(study)
    made = record("results", tmp_path / "out", with_data=True)
    assert {path for path, one in made.files.items() if one.left_out} == {
        f"results/models/8B-{unit}/model.safetensors" for unit in ("base", "dice")
    }
    assert (
        archived(tmp_path / "out" / "data.tar.xz")["pairs.jsonl"] == (study / "results/data/pairs.jsonl").read_bytes()
    )


def test_each_folder_of_a_study_is_one_archive(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = ["results/data/a.jsonl", "results/data/cuke/pairs.jsonl", "results/data/problems.jsonl", "results/t.csv"]
    paths += ["reported/data/a.csv", "results/datum/a.jsonl"]
    for path in paths:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(path)
    made = Record(results="results", drawn_with="", reports=[], files={})
    Path("out").mkdir()
    store(made, Path("out"), paths)
    assert {file.name for file in Path("out").iterdir()} == {
        "data.tar.xz", "datum.tar.xz", "outside.tar.xz", "t.csv"
    }  # fmt: skip
    assert list(archived(Path("out/data.tar.xz"))) == ["a.jsonl", "cuke/pairs.jsonl", "problems.jsonl"]
    assert unpack(made, Path("out"), Path("again")) == []
    assert [Path("again", path).read_text() for path in paths] == paths
    unpack(made, Path("out"), Path("part"), leave={"results/data/cuke/pairs.jsonl", "results/t.csv"})
    assert {str(file.relative_to("part")) for file in Path("part").rglob("*") if file.is_file()} == {
        path for path in paths if "cuke" not in path and "t.csv" not in path
    }


def test_weights_that_are_gone_before_the_study_is_recorded_are_left_out_by_their_sum(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(study, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("recorded"))
    for weights in ("results/models/8B-base/model.safetensors", "results/models/8B-dice/model.safetensors"):
        Path(weights).unlink()
    before, after = read_record(study / FOLDER).files, record("results", FOLDER).files
    assert {path: one.sha256 for path, one in after.items()} == {path: one.sha256 for path, one in before.items()}
    assert [path for path, one in after.items() if one.bytes is None] == [
        "results/models/8B-base/model.safetensors", "results/models/8B-dice/model.safetensors"
    ]  # fmt: skip
    shutil.rmtree("results/models")
    lines, good = audit(str(FOLDER / "table1.csv"), CELL)
    assert good, "\n".join(lines)


def test_recording_twice_gives_the_same_folder(study, tmp_path, monkeypatch):
    monkeypatch.chdir(study)
    record("results", tmp_path / "again")
    files = {
        file.relative_to(study / FOLDER): file.read_bytes() for file in (study / FOLDER).rglob("*") if file.is_file()
    }
    again = tmp_path / "again"
    assert files == {file.relative_to(again): file.read_bytes() for file in again.rglob("*") if file.is_file()}


def test_a_table_that_says_something_else_is_named(clone, capsys):
    edited(FOLDER / "table1.csv", "50.0", "60.0")
    edited_json(FOLDER / "record.json", files=changed_hash("results/table1.csv", FOLDER / "table1.csv"))
    assert main(["regenerate", str(FOLDER), "--out", "build"]) == 1
    said = capsys.readouterr().out
    assert [line.split()[1] for line in said.splitlines() if line.startswith("DIFFERS")] == ["results/table1.csv"]
    assert "1 differ" in said


def changed_hash(path: str, file: Path) -> dict:
    """The index after someone wrote the hash of a changed file into it."""
    files = read_record(FOLDER).model_dump()["files"]
    return files | {path: files[path] | {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}}


def test_a_figure_by_another_matplotlib_says_so(clone):
    record_file = FOLDER / "record.json"
    files = read_record(FOLDER).model_dump()["files"]
    files["results/figure6.png"]["sha256"] = "0" * 64
    edited_json(record_file, files=files, drawn_with="3.0.0")
    wrong = [one for one in regenerate(FOLDER, Path("build")) if not one.same]
    assert [one.path for one in wrong] == ["results/figure6.png"]
    assert wrong[0].note.startswith("drawn by matplotlib 3.0.0, here ")


@pytest.mark.parametrize("path", ["verdicts/8B-dice/seed0.jsonl", "generations/8B-dice/seed0.jsonl"])
def test_changed_evidence_is_refused_by_name(clone, path):
    repack(path, "level1/2", "level1/3")
    archive, name = inside(path)
    with pytest.raises(DiceError, match=f"{archive}: {name}: changed since it was recorded"):
        regenerate(FOLDER, Path("build"))
    whole = archive.read_bytes()
    with tarfile.open(archive, "w:xz"):
        pass
    with pytest.raises(DiceError, match=f"{archive}: 8B-base/seed0.jsonl is gone from it"):
        regenerate(FOLDER, Path("build"))
    for damaged in (b"no archive", whole[: len(whole) // 2]):
        archive.write_bytes(damaged)
        with pytest.raises(DiceError, match=f"{archive}: damaged"):
            regenerate(FOLDER, Path("build"))
    archive.unlink()
    with pytest.raises(DiceError, match=f"{archive}: gone"):
        regenerate(FOLDER, Path("build"))


def test_a_path_that_leads_out_of_the_folder_is_refused(clone):
    files = read_record(FOLDER).model_dump()["files"]
    edited_json(FOLDER / "record.json", files=files | {"../../evil": {"sha256": "0", "bytes": 1}})
    with pytest.raises(DiceError, match="is not below the folder"):
        read_record(FOLDER)


def test_an_audit_of_a_fresh_clone_goes_down_to_the_kernel(clone):
    lines, good = audit(str(FOLDER / "table1.csv"), CELL, "level1/1_Add")
    said = "\n".join(lines)
    assert good, said
    assert "counted again from the verdicts: 50.0 (the same)" in lines
    assert lines.index("answers that count: 1") < lines.index("answers that do not: 1")
    digest = hashlib.sha256(KERNEL.format(k="0.0f").encode()).hexdigest()
    assert f"  level1/1_Add, seed 0, sample 0, code {digest[:16]}: correct" in lines
    assert "        return x + 0" in said  # the problem
    assert "__global__ void kernel(float* x) { x[0] = 0.0f; }" in said
    assert "  the verdict is about this text: yes" in lines
    states = {lines[k].strip(): line.split()[0] for k, line in enumerate(lines[1:]) if line.startswith("  ")}
    assert states["results/models/8B-dice"] == states["results/models/8B-dice/model.safetensors"] == "recorded"
    assert states["results/verdicts/8B-dice/seed0.jsonl"] == states["results/data/problems.jsonl"] == "verified"
    assert states["results/data/pairs.jsonl"] == "recorded"


REMADE = Path("build/tiny")


def link_lines(lines: list[str]) -> dict[str, str]:
    """Path of a link -> the line that says its state."""
    return {lines[k].strip(): line.strip() for k, line in enumerate(lines[1:])}


@pytest.fixture
def remade(clone) -> Path:
    """What `dice regenerate` writes in a fresh clone."""
    regenerate(FOLDER, REMADE)
    return clone


@pytest.mark.parametrize("inside", [True, False])
def test_an_audit_of_tables_that_were_made_again_names_what_was_left_out(remade, monkeypatch, inside):
    weights = read_record(FOLDER).files["results/models/8B-dice/model.safetensors"].sha256[:16]
    pairs = read_record(FOLDER).files["results/data/pairs.jsonl"].sha256[:16]
    if inside:
        monkeypatch.chdir(REMADE)
    lines, good = audit("results/table1.csv" if inside else str(REMADE / "results/table1.csv"), CELL, "level1/1_Add")
    assert good, "\n".join(lines)
    said = link_lines(lines)
    for path, left_out in {
        "results/models/8B-dice": f"model.safetensors (sha256 {weights})",
        "results/models/8B-dice/model.safetensors": f"model.safetensors (sha256 {weights})",
        "results/data/pairs.jsonl": f"pairs.jsonl (sha256 {pairs})",
    }.items():
        assert said[path].startswith("recorded "), said[path]
        assert said[path].endswith(f"left out of the record: {left_out}")
    assert said["results/verdicts/8B-dice/seed0.jsonl"].startswith("verified ")


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("results/verdicts/8B-dice/seed0.jsonl", '"wrong_value"', '"correct"'),
        ("results/models/8B-dice/history.jsonl", "0.5", "0.9"),
        ("results/models/8B-dice/model.manifest.json", '"cpu": "', '"cpu": "another '),
        ("results/table1.csv", "50.0", "60.0"),
    ],
)
def test_an_audit_of_tables_that_were_made_again_sees_each_change(remade, path, old, new):
    edited(REMADE / path, old, new)
    lines, good = audit(str(REMADE / "results/table1.csv"), CELL)
    assert not good
    assert any(path in line and "changed" in line for line in lines)


def test_what_was_left_out_may_come_back_but_not_as_another_file(study, remade):
    weights = "results/models/8B-dice/model.safetensors"
    shutil.copy(study / weights, REMADE / weights)
    lines, good = audit(str(REMADE / "results/table1.csv"), CELL)
    assert good
    assert {link_lines(lines)[path].split()[0] for path in (weights, str(Path(weights).parent))} == {"verified"}
    (REMADE / weights).write_bytes(b"others")
    lines, good = audit(str(REMADE / "results/table1.csv"), CELL)
    assert not good
    assert f"  changed: {weights}" in lines
    (REMADE / "results/verdicts/8B-dice/seed0.jsonl").unlink()
    lines, good = audit(str(REMADE / "results/table1.csv"), CELL)
    assert not good
    assert "results/verdicts/8B-dice/seed0.jsonl: gone" in lines


def test_an_audit_sees_each_change_of_the_folder(clone):
    """Another kernel under the same verdict; other weights than those that answered; a verdict turned around."""
    changes = {
        "generations/8B-dice/seed0.jsonl": ("x[0] = 0.0f", "x[0] = 9.0f"),
        "models/8B-dice/SHA256SUMS": (read_record(FOLDER).files["results/models/8B-dice/model.safetensors"].sha256, "0" * 64),
        "verdicts/8B-dice/seed0.jsonl": ('"wrong_value"', '"correct"'),
    }  # fmt: skip
    said = {}
    for path, (old, new) in changes.items():
        archive, _ = inside(path)
        before = archive.read_bytes()
        repack(path, old, new)
        said[path], good = audit(str(FOLDER / "table1.csv"), CELL, "level1/1_Add")
        assert not good
        archive.write_bytes(before)
    answers, weights, verdicts = said.values()
    assert "  the verdict is about this text: NO" in answers
    assert "  changed: results/generations/8B-dice/seed0.jsonl" in answers
    assert any("SHA256SUMS" in line and "changed" in line for line in weights)
    assert any("NOT THE SAME" in line for line in verdicts)


def test_an_audit_of_an_unknown_problem_is_one_sentence(clone):
    with pytest.raises(DiceError, match="--problem level1/9: not one of"):
        audit(str(FOLDER / "table1.csv"), CELL, "level1/9")


def test_a_study_whose_tables_are_not_made_from_its_evidence_is_not_recorded(study, tmp_path, monkeypatch):
    shutil.copytree(study / "results", tmp_path / "results", ignore=shutil.ignore_patterns("recorded"))
    shutil.copy(study / "reported.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    edited(Path("results/table1.csv"), "50.0", "60.0")
    with pytest.raises(DiceError, match=r"results/table1\.csv: made again from its inputs it is another file"):
        record("results", Path("out"))
    assert not Path("out").exists()


def test_a_folder_over_the_limit_names_what_is_large(study, tmp_path, monkeypatch):
    monkeypatch.chdir(study)
    with pytest.raises(DiceError, match=r"the limit is 0\.01\. Largest: figure1\.png"):
        record("results", tmp_path / "out", limit_mb=0.01)
    assert not list(tmp_path.iterdir())


def test_what_only_this_machine_has_is_not_recorded(tmp_path):
    (tmp_path / "results").mkdir()
    with pytest.raises(DiceError, match="no table or figure with its manifest"):
        record(str(tmp_path / "results"), tmp_path / "out")


def test_nothing_recorded_is_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["regenerate", "--out", "build"]) != 0
    assert "no study is recorded" in capsys.readouterr().err
    assert main(["regenerate", "other", "--out", "build"]) != 0
    assert "other: not a recorded study" in capsys.readouterr().err


def test_no_command_deletes_the_study_that_it_reads(study, clone, monkeypatch):
    for command in (lambda: regenerate(FOLDER, FOLDER), lambda: write_crate(FOLDER, FOLDER.parent, Path("Snakefile"))):
        with pytest.raises(DiceError, match="name another folder as --out"):
            command()
    assert read_record(FOLDER).reports
    monkeypatch.chdir(study)
    for out in ("results", "."):
        with pytest.raises(DiceError, match="name another folder as --out"):
            record("results", Path(out))
    assert Path("results/table1.csv").is_file()
