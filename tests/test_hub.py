"""`dice fetch` with the hub's own client against a small server that speaks as the hub does."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from waiting import PATIENCE_S

COMMIT = "b968826" + "d" * 33
DATA = {"data/rows.arrow": b"rows" * 100, "README.md": b"about"}
FILES = {"config.json": b"{}", "model.safetensors": b"weights" * 1000, "pytorch_model.bin": b"the same once more"}


class Hub(BaseHTTPRequestHandler):
    """Repositories of one commit: `a/b`; `a/empty` without weights; `a/damaged`, whose weights are not those that it names;
    `a/huge`, which fits no disk; `a/gated`; the data set `a/d`."""

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.partition("?")[0]
        repo = next((name for name in ("b", "empty", "damaged", "huge", "gated", "d") if f"/a/{name}/" in path), None)
        names = {"empty": ["config.json"], "d": list(DATA)}.get(repo, list(FILES))
        if repo == "gated":
            self.answer({"error": "gated"}, 401, {"X-Error-Code": "GatedRepo"})
        elif repo and path.endswith((f"/revision/{COMMIT}", "/revision/main")):
            siblings = [{"rfilename": name, **self.facts(repo, name)} for name in names]
            self.answer({"id": f"a/{repo}", "sha": COMMIT, "siblings": siblings, "cardData": {"license": "mit"}})
        elif path.endswith("/commits/main"):
            self.answer([{"id": COMMIT, "title": "", "message": "", "date": "2025-07-21T00:00:00.000Z", "authors": []}])
        elif f"/tree/{COMMIT}" in path:
            self.answer(
                [{"type": "file", "path": name, "size": len((FILES | DATA)[name]), "oid": name} for name in names]
            )
        elif f"/resolve/{COMMIT}/" in path and path.partition(f"{COMMIT}/")[2] in FILES | DATA:
            self.answer((FILES | DATA)[path.partition(f"{COMMIT}/")[2]])
        else:
            self.answer({"error": "not found"}, 404)

    def facts(self, repo, name):
        size = 10**18 if repo == "huge" else len((FILES | DATA)[name])
        content = b"other weights" if repo == "damaged" else (FILES | DATA)[name]
        lfs = {"sha256": hashlib.sha256(content).hexdigest(), "size": size, "pointerSize": 100}
        return {"size": size} | ({"lfs": lfs} if name.endswith("safetensors") else {})

    def answer(self, body, status=200, headers=None):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, format, *args):
        pass


@pytest.fixture
def fetch(tmp_path):
    """Runs `dice fetch` with that hub."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "dice.cli", "fetch", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "HF_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}", "HF_HUB_OFFLINE": "0"}
            | {"HF_HOME": str(tmp_path / "cache"), "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
            check=False,
            timeout=PATIENCE_S,
        )

    yield run
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("revision", [["--revision", "b968826"], []])
def test_the_manifest_names_the_whole_commit(fetch, tmp_path, revision):
    out = tmp_path / "model"
    done = fetch("--hub", "a/b", "--out", str(out), *revision)
    assert done.returncode == 0, done.stderr
    assert (out / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert not (out / "pytorch_model.bin").exists()
    manifest = json.loads((out / "model.manifest.json").read_text())
    assert manifest["extra"]["commit"] == COMMIT
    assert manifest["extra"]["licence"] == "mit"
    assert f"fetch: a/b at {COMMIT}: 2 files, 0.00 GB, licence mit" in done.stderr
    digest = hashlib.sha256(FILES["model.safetensors"]).hexdigest()
    assert manifest["extra"]["files"] == {
        "config.json": hashlib.sha256(b"{}").hexdigest(),
        "model.safetensors": digest,
    }


@pytest.mark.parametrize(
    ("repository", "revision", "sentence"),
    [
        ("a/b", "abcdef0", "0 commits start with abcdef0"),
        ("a/b", "f" * 40, "the Hugging Face hub cannot be read"),
        ("a/empty", COMMIT, "no safetensors"),
        ("a/none", "main", "the Hugging Face hub cannot be read"),
        ("a/gated", COMMIT, "accept its licence at https://huggingface.co/a/gated, and set HF_TOKEN"),
        ("a/damaged", COMMIT, "model.safetensors: damaged on the way"),
        ("a/huge", COMMIT, "GB are missing"),
    ],
)
def test_what_is_not_there_is_one_sentence(fetch, tmp_path, repository, revision, sentence):
    done = fetch("--hub", repository, "--revision", revision, "--out", str(tmp_path / "model"))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len([line for line in done.stderr.splitlines() if not line.startswith("fetch: ")]) == 1
    assert not (tmp_path / "model" / "model.safetensors").exists()
    assert not (Path(tmp_path) / "model" / "model.manifest.json").exists()


def test_files_of_a_data_set(fetch, tmp_path):
    out = tmp_path / "data"
    done = fetch("--kind", "dataset", "--hub", "a/d", "--files", "data/*.arrow", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert (out / "data" / "rows.arrow").read_bytes() == DATA["data/rows.arrow"]
    assert not (out / "README.md").exists()
    files = json.loads((out / "model.manifest.json").read_text())["extra"]["files"]
    assert files == {"data/rows.arrow": hashlib.sha256(DATA["data/rows.arrow"]).hexdigest()}
    done = fetch("--kind", "dataset", "--hub", "a/d", "--files", "nothing.arrow", "--out", str(out))
    assert done.returncode == 2
    assert "no files nothing.arrow in it" in done.stderr
