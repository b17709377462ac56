"""GitHub's workflow calls the project's own targets and takes nothing that can change behind its back."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
BASES = [
    image["base"]["digest"]
    for image in yaml.safe_load((ROOT / "containers" / "images.yaml").read_text())["images"].values()
]


def complaints(text: str) -> set[str]:
    """What is wrong with a workflow file, one word for each kind."""
    workflow = yaml.safe_load(text)
    jobs, makefile = workflow["jobs"].values(), (ROOT / "Makefile").read_text()
    # Every word at the beginning of a line of the Makefile before a colon: its targets.
    targets = {name for line in re.findall(r"^([a-z][\w -]*):", makefile, re.M) for name in line.split()}
    commands = [step["run"].strip() for job in jobs for step in job["steps"] if "run" in step]
    called = {name for command in commands if command.startswith("make ") for name in command.split()[1:]}
    found = set()
    if not ({"make test", ".ci/run"} & set(commands)):
        found.add("gate")
    if not called <= targets:
        found.add("target")
    if not all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use) for use in uses(text)):
        found.add("action")
    if not all(job["container"].partition("@")[2] in BASES for job in jobs if "container" in job):
        found.add("container")
    if not all(re.fullmatch(r"ubuntu-\d+\.\d+", job["runs-on"]) and job["timeout-minutes"] <= 60 for job in jobs):
        found.add("runner")
    if workflow["permissions"] != {"contents": "read"}:
        found.add("permissions")
    return found


def uses(text: str) -> list[str]:
    """Actions with the comment that names the version of the commit."""
    return re.findall(r"uses: (.*)", text)


def test_the_workflow_is_sound():
    assert len(uses(TEXT)) >= 3
    assert complaints(TEXT) == set()


@pytest.mark.parametrize(
    ("pattern", "new", "complaint"),
    [
        (r"run: make test\n", "run: make check\n", "gate"),
        ("test-container", "test-image", "target"),
        ("checkout@[0-9a-f]{40} # v[0-9.]+", "checkout@v6", "action"),
        ("@sha256:[0-9a-f]{64}", "", "container"),
        ("@sha256:[0-9a-f]{64}", "@sha256:" + "0" * 64, "container"),
        (r"ubuntu-24\.04", "ubuntu-latest", "runner"),
        ("contents: read", "contents: write", "permissions"),
    ],
)
def test_an_unsound_workflow_is_found(pattern, new, complaint):
    assert re.search(pattern, TEXT)
    assert complaints(re.sub(pattern, new, TEXT, count=1)) == {complaint}
