"""`dice fetch` with the hub's own client against a small server that speaks as the hub does."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from waiting import PATIENCE_S, wait_for

from dice.cli import main

COMMIT = "b968826" + "d" * 33
DATA = {"data/rows.arrow": b"rows" * 100, "README.md": b"about"}
FILES = {"config.json": b"{}", "model.safetensors": b"weights" * 1000, "pytorch_model.bin": b"the same once more"}


class Hub(BaseHTTPRequestHandler):
    """Repositories of one commit: `a/b`; `a/empty` without weights; `a/damaged`, whose weights are not those that it names;
    `a/huge`, which fits no disk; `a/gated`; the data set `a/d`."""

    files = FILES | DATA

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.partition("?")[0]
        repo = next((name for name in ("b", "empty", "damaged", "huge", "gated", "d") if f"/a/{name}/" in path), None)
        names = {"empty": ["config.json"], "d": list(DATA)}.get(repo or "", list(FILES))
        if repo == "gated":
            self.answer({"error": "gated"}, 401, {"X-Error-Code": "GatedRepo"})
        elif repo and path.endswith((f"/revision/{COMMIT}", "/revision/main")):
            siblings = [{"rfilename": name, **self.facts(repo, name)} for name in names]
            self.answer({"id": f"a/{repo}", "sha": COMMIT, "siblings": siblings, "cardData": {"license": "mit"}})
        elif path.endswith("/commits/main"):
            self.answer([{"id": COMMIT, "title": "", "message": "", "date": "2025-07-21T00:00:00.000Z", "authors": []}])
        elif f"/tree/{COMMIT}" in path:
            self.answer([{"type": "file", "path": name, "size": len(self.files[name]), "oid": name} for name in names])
        elif f"/resolve/{COMMIT}/" in path and path.partition(f"{COMMIT}/")[2] in self.files:
            self.resolve(path.partition(f"{COMMIT}/")[2])
        else:
            self.answer({"error": "not found"}, 404)

    def resolve(self, name):
        self.answer(self.files[name])

    def facts(self, repo, name):
        size = 10**18 if repo == "huge" else len(self.files[name])
        content = b"other weights" if repo == "damaged" else self.files[name]
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


MIB = 2**20
LARGE = b"".join(hashlib.sha256(number.to_bytes(4)).digest() * 1024 for number in range(24 * MIB // (32 * 1024)))
"""Weights of 24 MiB, no two parts alike: the hub's client keeps what has come in parts of 10 MiB."""


class Cutting(Hub):
    """A hub that ends the connection early, as often as `cuts` says, and that goes on where it is asked to."""

    files = FILES | {"model.safetensors": LARGE}
    cuts = 0
    after = 12 * MIB
    """Bytes of an answer that is cut."""
    stalls = False
    """Instead of ending the connection it waits for ever."""
    rest = LARGE
    """What later parts are taken from."""
    asked: list[tuple[str, str | None]]
    """File and range of each download."""

    def resolve(self, name):
        if self.command == "HEAD":
            self.answer(self.files[name])
            return
        kind, wanted = type(self), self.headers["Range"]
        kind.asked.append((name, wanted))
        if name != "model.safetensors":
            self.answer(self.files[name])
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        body = (kind.rest if start else LARGE)[start:]
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body)))
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(LARGE) - 1}/{len(LARGE)}")
        self.end_headers()
        if kind.cuts:
            kind.cuts -= 1
            with contextlib.suppress(ConnectionError):  # a client that is killed hears nothing more
                self.wfile.write(body[: kind.after])
                self.wfile.flush()
            if kind.stalls:
                threading.Event().wait(PATIENCE_S)
            self.close_connection = True
        else:
            self.wfile.write(body)


@contextlib.contextmanager
def serving(handler: type[Hub], home: Path) -> Iterator[dict[str, str]]:
    """Within: that hub; yields the environment in which its client asks it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}", "HF_HUB_OFFLINE": "0"}
    yield {**os.environ, **address, "HF_HOME": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    server.shutdown()
    server.server_close()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dice.cli", "fetch", *arguments]


def finished(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, env=env, check=False, timeout=PATIENCE_S)


@pytest.fixture
def fetch(tmp_path):
    """Runs `dice fetch` with that hub."""
    with serving(Hub, tmp_path / "cache") as env:
        yield lambda *arguments: finished(env, *arguments)


@pytest.fixture
def cutting(tmp_path):
    """(hub, environment) of one that ends connections."""
    handler = type("OneCutting", (Cutting,), {"asked": []})
    with serving(handler, tmp_path / "cache") as env:
        yield handler, env


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


def test_a_full_disk_is_no_unreadable_hub(tmp_path, monkeypatch, capsys):
    """The disk may fill up with what others write, after its free space was looked at."""
    one = SimpleNamespace(rfilename="model.safetensors", size=1, lfs=None)
    info = SimpleNamespace(siblings=[one], sha=COMMIT, card_data=None)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(huggingface_hub.HfApi, "repo_info", lambda *_, **__: info)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", full)
    assert main(["fetch", "--hub", "a/b", "--revision", COMMIT, "--out", str(tmp_path / "model")]) == 3
    assert capsys.readouterr().err.endswith("dice fetch: No space left on device; make room, then run it again.\n")


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


def test_a_connection_that_is_cut_goes_on_at_the_byte(cutting, tmp_path):
    hub, env = cutting
    hub.cuts = 2
    out = tmp_path / "model"
    done = finished(env, "--hub", "a/b", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert (out / "model.safetensors").read_bytes() == LARGE
    ranges = [wanted for name, wanted in hub.asked if name == "model.safetensors"]
    assert ranges == [None, f"bytes={10 * MIB}-", f"bytes={20 * MIB}-"], "nothing is loaded twice but a part"
    files = json.loads((out / "model.manifest.json").read_text())["extra"]["files"]
    assert files["model.safetensors"] == hashlib.sha256(LARGE).hexdigest()


def test_a_download_that_went_on_with_other_bytes_is_damaged_and_made_anew(cutting, tmp_path):
    hub, env = cutting
    hub.cuts, hub.rest = 1, LARGE[:-1] + b"?"
    out = tmp_path / "model"
    done = finished(env, "--hub", "a/b", "--out", str(out))
    assert done.returncode == 2
    assert "model.safetensors: damaged on the way" in done.stderr
    assert not (out / "model.safetensors").exists()
    assert not (out / "model.manifest.json").exists()
    done = finished(env, "--hub", "a/b", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert (out / "model.safetensors").read_bytes() == LARGE


def test_after_a_kill_whole_files_are_kept_and_no_part_is_left_behind(cutting, tmp_path):
    hub, env = cutting
    hub.cuts, hub.stalls = 1, True
    out = tmp_path / "model"
    arguments = ("--hub", "a/b", "--out", str(out))
    killed = subprocess.Popen(command(*arguments), env=env, stderr=subprocess.DEVNULL)
    whole = out / ".cache" / "huggingface" / "download" / "config.json.metadata"
    wait_for(lambda: whole.is_file() and parts(out) and not hub.cuts, "a file whole and another on its way")
    killed.kill()
    killed.wait()
    assert parts(out)
    hub.asked.clear()
    done = finished(env, *arguments)
    assert done.returncode == 0, done.stderr
    assert hub.asked == [("model.safetensors", None)]
    assert (out / "model.safetensors").read_bytes() == LARGE
    assert not parts(out)


def parts(out: Path) -> list[Path]:
    """What is not whole yet."""
    return list(out.rglob("*.incomplete"))
