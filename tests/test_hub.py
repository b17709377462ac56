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

COMMIT = "b968826" + "d" * 33
FILES = {"config.json": b"{}", "model.safetensors": b"weights" * 1000, "pytorch_model.bin": b"the same once more"}


class Hub(BaseHTTPRequestHandler):
    """Two repositories of one commit: `a/b`, and `a/empty`, which has no weights."""

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.partition("?")[0]
        names = list(FILES) if "/a/b" in path else ["config.json"]
        if path in (f"/api/models/{repo}/revision/{rev}" for repo in ("a/b", "a/empty") for rev in (COMMIT, "main")):
            self.answer({"id": "a/b", "sha": COMMIT, "siblings": [{"rfilename": name} for name in names]})
        elif path.endswith("/commits/main"):
            self.answer([{"id": COMMIT, "title": "", "message": "", "date": "2025-07-21T00:00:00.000Z", "authors": []}])
        elif f"/tree/{COMMIT}" in path:
            self.answer([{"type": "file", "path": name, "size": len(FILES[name]), "oid": name} for name in names])
        elif f"/resolve/{COMMIT}/" in path and path.rpartition("/")[2] in FILES:
            self.answer(FILES[path.rpartition("/")[2]])
        else:
            self.answer({"error": "not found"}, 404)

    def answer(self, body, status=200):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
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
            timeout=60,
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
    ],
)
def test_what_is_not_there_is_one_sentence(fetch, tmp_path, repository, revision, sentence):
    done = fetch("--hub", repository, "--revision", revision, "--out", str(tmp_path / "model"))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (Path(tmp_path) / "model" / "model.manifest.json").exists()
