"""A model is published whole or not at all, and its hashes tell when it has changed."""

import errno
import shutil
import subprocess

import pytest

from dice.cli import main
from dice.errors import DiceError
from dice.evidence.chain import folder_hashes, folder_state
from dice.manifest import sha256_file
from dice.study.fingerprint import fingerprint
from dice.study.publish import publish


@pytest.fixture
def state(tmp_path):
    (tmp_path / "state" / "model" / "tokenizer").mkdir(parents=True)
    (tmp_path / "state" / "model" / "model.safetensors").write_bytes(bytes(range(256)))
    (tmp_path / "state" / "model" / "tokenizer" / "vocab.json").write_text("{}")
    (tmp_path / "state" / "history.jsonl").write_text("{}\n")
    return tmp_path / "state"


def test_files_and_hashes_arrive(state, tmp_path):
    out = tmp_path / "models" / "8B-dice"
    publish([state / "model", state / "history.jsonl"], out)
    assert (out / "tokenizer" / "vocab.json").read_text() == "{}"
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=out, check=True)
    assert folder_state(out, folder_hashes(out, None)) == "verified"
    (out / "model.safetensors").write_bytes(bytes(256))
    assert folder_state(out, folder_hashes(out, None)) == "changed"


def test_a_download_may_keep_notes_of_its_own_and_nothing_beside_its_files(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"w")
    hashes = {"model.safetensors": sha256_file(tmp_path / "model.safetensors")}
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "model.safetensors.metadata").write_text("etag")
    (tmp_path / "model.manifest.json").write_text("{}")
    assert folder_state(tmp_path, hashes) == "verified"
    (tmp_path / "modeling.py").write_text("import os")
    assert folder_state(tmp_path, hashes) == "changed"


def test_a_lost_file_is_a_change_and_a_folder_without_hashes_is_unverified(state, tmp_path):
    publish([state / "model"], tmp_path / "out")
    (tmp_path / "out" / "tokenizer" / "vocab.json").unlink()
    assert folder_state(tmp_path / "out", folder_hashes(tmp_path / "out", None)) == "changed"
    assert folder_state(state, folder_hashes(state, None)) == "unverified"


def test_publishing_again_replaces_and_the_fingerprint_knows_contents_only(state, tmp_path):
    out = tmp_path / "out"
    publish([state / "model", state / "history.jsonl"], out)
    before = fingerprint([str(out)])
    (state / "history.jsonl").write_text('{"seconds": 2}\n')
    (out / "stale").touch()
    publish([state / "model", state / "history.jsonl"], out)
    assert not (out / "stale").exists()
    assert fingerprint([str(out)]) == before
    (state / "model" / "tokenizer" / "vocab.json").write_text("[]")
    publish([state / "model"], out)
    assert fingerprint([str(out)]) != before


def test_a_folder_onto_itself_gets_its_hashes(state):
    publish([state / "model"], state / "model")
    assert folder_state(state / "model", folder_hashes(state / "model", None)) == "verified"
    assert (state / "model" / "tokenizer" / "vocab.json").is_file()


def test_a_full_disk_leaves_no_model(state, tmp_path, monkeypatch, capsys):
    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(shutil, "copyfile", full)
    assert main(["publish", "--out", str(tmp_path / "out"), str(state / "model")]) != 0
    assert "make room" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    publish([state / "model"], tmp_path / "out")
    assert not (tmp_path / "out.part").exists()


def test_nothing_to_publish_is_one_sentence(tmp_path):
    with pytest.raises(DiceError, match="nothing to publish"):
        publish([tmp_path / "gone"], tmp_path / "out")
