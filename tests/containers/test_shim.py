"""The stand-in for Apptainer: what Snakemake asks of it, on a container engine that only records its arguments."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SHIM = ROOT / "containers" / "bin" / "apptainer"
ENGINE = """#!/bin/sh
if [ "$1 $2" = "image inspect" ]; then
    case "$5" in
        localhost/dice-cpu | sha256:feed) echo feed ;;
        *) exit 125 ;;
    esac
else
    printf '%s\\n' "$@"
fi
"""


@pytest.fixture
def call(tmp_path):
    """Runs the shim in a folder with the recording engine as `podman`."""
    binary = tmp_path / "bin" / "podman"
    binary.parent.mkdir()
    binary.write_text(ENGINE)
    binary.chmod(0o755)

    def run(*arguments, **environment):
        return subprocess.run(
            [sys.executable, SHIM, *arguments],
            cwd=tmp_path,
            env={"PATH": f"{binary.parent}:/usr/bin:/bin", **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_version_is_one_that_snakemake_takes(call):
    name, _, version = call("--version").stdout.partition(" version ")
    assert name == "apptainer"
    assert int(version.split(".")[0]) >= 1


def test_command_runs_in_the_pulled_image(call, tmp_path):
    assert call("pull", "--name", "a.simg", "docker://localhost/dice-cpu").returncode == 0
    arguments = [
        "exec",
        "--home",
        str(tmp_path),
        "--bind",
        "/data:/data",
        "--nv",
        "a.simg",
        "sh",
        "-c",
        "echo -n x > y",
    ]
    done = call(
        "--quiet", "--silent", *arguments, SINGULARITYENV_A="1", SECRET="s", DICE_ENGINE_RUN_ARGS="--network=none"
    )
    lines = done.stdout.splitlines()
    assert lines[-5:] == ["--network=none", "sha256:feed", "sh", "-c", "echo -n x > y"]
    assert f"{tmp_path}:{tmp_path}" in lines
    assert "/data:/data" in lines
    assert "nvidia.com/gpu=all" in lines
    assert lines[lines.index("--cap-add") + 1] == "SYS_ADMIN"
    assert "A=1" in lines
    assert "DICE_IMAGE=localhost/dice-cpu@sha256:feed" in lines
    assert not any("SECRET" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["pull", "--name", "b.simg", "docker://localhost/dice-tex"], "run `make container-tex` first"),
        (["pull", "--name", "b.simg", "library://x/y"], "only docker:// images"),
        (["exec", "missing.simg", "true"], "not written by this shim"),
    ],
)
def test_what_cannot_work_is_one_sentence(call, tmp_path, arguments, sentence):
    done = call(*arguments)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "b.simg").exists()


def test_without_an_engine(call):
    assert "no container engine found" in call("pull", "--name", "b", "docker://x", PATH="/nonexistent").stderr


def test_every_image_has_its_recipes_and_only_digests_are_published():
    images = yaml.safe_load((ROOT / "containers" / "images.yaml").read_text())["images"]
    assert set(images) == {"cpu", "cuda", "tex"}
    for image in images.values():
        for key in ("recipe", "definition", "lock"):
            assert image[key] is None or (ROOT / image[key]).is_file()
        assert image["uri"] is None or "@sha256:" in image["uri"]


def test_locks_pin_every_package_by_hash():
    for lock in (ROOT / "containers").glob("*.lock"):
        rows = [line for line in lock.read_text().splitlines() if line and not line.startswith("#")]
        assert rows
        for row in rows:
            assert re.fullmatch(r"[\w.-]+==\S+ --hash=sha256:[0-9a-f]{64}", row), f"{lock.name}: {row}"


def test_scripts_are_executable():
    for name in ("bin/apptainer", "build.sh", "dice"):
        assert os.access(ROOT / "containers" / name, os.X_OK)
