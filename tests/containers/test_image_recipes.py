"""The recipes of an image say the same: Dockerfile, Apptainer definition, lock, images.yaml; and every rule has an image."""

import ast
import re
import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HEADER = r"^Bootstrap: \{\{ bootstrap \}\}\nFrom: \{\{ base \}\}\n\n%arguments\n    bootstrap=docker\n    base=(\S+)\n"
NAMES = {
    "cuda": "cuda-bindings",
    "elftools": "pyelftools",
    "huggingface_hub": "huggingface-hub",
    "prometheus_client": "prometheus-client",
    "snakemake_interface_logger_plugins": "snakemake-interface-logger-plugins",
    "yaml": "pyyaml",
}
"""Names under which a package is installed, where it is imported by another."""
NOT_NEEDED = {
    # of GPUs; the package that an adapter serves
    "cpu": {"cuda-bindings", "deepspeed", "triton", "verifiers"},
    # no wheel; of the workflow and the figures, on the CPU; the package that an adapter serves
    "cuda": {
        "deepspeed",
        "jsonschema",
        "matplotlib",
        "rocrate",
        "snakemake",
        "snakemake-interface-logger-plugins",
        "verifiers",
    },
}
IMAGES = yaml.safe_load((ROOT / "containers" / "images.yaml").read_text())["images"]


@dataclass(frozen=True)
class Recipe:
    """What an image consists of, whichever language says it."""

    base: str
    packages: frozenset[str]
    indexes: frozenset[str]
    pip: str | None
    copied: frozenset[str]
    environment: frozenset[str]
    labels: frozenset[tuple[str, str]]


def only(pattern: str, text: str, flags: int = 0) -> str:
    found = re.search(pattern, text, flags)
    assert found is not None
    return found.group(1)


def from_dockerfile(text: str) -> Recipe:
    text = re.sub(r" *\\\n *", " ", text)
    labels = "".join(re.findall(r"^LABEL (.*)", text, re.M))
    return Recipe(
        only(r"^ARG BASE=docker\.io/(?:library/)?(\S+)\nFROM \$\{BASE\}$", text, re.M),
        packages(text),
        frozenset(re.findall(r"^ARG PIP_EXTRA_INDEX_URL=(\S+)", text, re.M)),
        pip(text),
        frozenset(re.findall(r"^COPY (?:--chmod=755 )?(containers/\S+)", text, re.M)),
        frozenset("".join(re.findall(r"^ENV (.*)", text, re.M)).split()),
        frozenset(re.findall(r'(\S+)="([^"]*)"', labels)),
    )


def from_definition(text: str) -> Recipe:
    text = re.sub(r" *\\\n *", " ", text)
    return Recipe(
        only(HEADER, text),
        packages(text),
        frozenset(re.findall(r"PIP_EXTRA_INDEX_URL-([^}]*)\}", text)),
        pip(text),
        frozenset(re.findall(r"^    (containers/\S+) /", text, re.M)),
        frozenset(" ".join(re.findall(r"^    export (.*)", text, re.M)).split()),
        frozenset(re.findall(r"^    (org\.\S+) (.*)", text, re.M)),
    )


def packages(text: str) -> frozenset[str]:
    return frozenset(only(r"apt-get install -y --no-install-recommends ([\w.+ -]+)", text).split())


def pip(text: str) -> str | None:
    found = re.search(r"pip install (.*)", text)
    return found and found.group(1).strip()


def differences(dockerfile: str, definition: str) -> set[str]:
    one, other = asdict(from_dockerfile(dockerfile)), asdict(from_definition(definition))
    return {name for name in one if one[name] != other[name]}


def read(kind: str, key: str) -> str:
    return (ROOT / IMAGES[kind][key]).read_text()


@pytest.mark.parametrize("kind", IMAGES)
def test_dockerfile_and_definition_agree(kind):
    assert differences(read(kind, "recipe"), read(kind, "definition")) == set()
    assert from_dockerfile(read(kind, "recipe")).labels, "an image says what it is"


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("@sha256:d5", "@sha256:e5", "base"),
        ("g++ git", "git", "packages"),
        ("/whl/cpu", "/whl/cu130", "indexes"),
        ("--require-hashes ", "", "pip"),
        ("containers/cpu.lock", "containers/cuda.lock", "copied"),
        ("PYTHONNOUSERSITE=1", "PYTHONNOUSERSITE=0", "environment"),
        ("title dice-cpu", "title dice", "labels"),
    ],
)
def test_a_difference_is_found(old, new, field):
    assert field in differences(read("cpu", "recipe"), read("cpu", "definition").replace(old, new))


@pytest.mark.parametrize("kind", IMAGES)
def test_bases_and_locks_are_those_of_the_list(kind):
    image, recipe = IMAGES[kind], from_dockerfile(read(kind, "recipe"))
    name, tag = image["base"]["tag"].removeprefix("docker.io/").removeprefix("library/").rsplit(":", 1)
    assert recipe.base == f"{name}@{image['base']['digest']}"
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", image["base"]["digest"])
    assert re.match(r"\d+\.\d+", tag), "a tag that moves with every release says nothing to the reader"
    assert {path for path in recipe.copied if path.endswith(".lock")} == {image["lock"]} - {None}
    assert (recipe.pip is None) == (image["lock"] is None)
    assert recipe.pip is None or "--require-hashes" in recipe.pip


def test_every_recipe_is_in_the_list():
    recipes = {
        path.name for pattern in ("*.Dockerfile", "*.def", "*.lock") for path in ROOT.glob(f"containers/{pattern}")
    }
    listed = {
        Path(image[key]).name for image in IMAGES.values() for key in ("recipe", "definition", "lock") if image[key]
    }
    assert recipes == listed


def test_the_toolkit_is_the_one_that_pytorch_was_built_with():
    toolkit = only(r"cuda:(\d+\.\d+)\.", IMAGES["cuda"]["base"]["tag"])
    lock = read("cuda", "lock")
    assert only(r"^nvidia-cuda-runtime==(\d+\.\d+)\.", lock, re.M) == toolkit
    index = f"/whl/cu{toolkit.replace('.', '')}"
    assert any(url.endswith(index) for url in from_dockerfile(read("cuda", "recipe")).indexes)


def imported(source: str) -> set[str]:
    """Packages of others that Python code imports, at its top or later."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules.add(str(node.module))
    packages = {module.split(".")[0] for module in modules} - {*sys.stdlib_module_names, "dice"}
    if "torch.utils.tensorboard" in modules:
        packages.add("tensorboard")  # PyTorch has the module, not the package
    return {NAMES.get(package, package) for package in packages}


@pytest.mark.parametrize("kind", NOT_NEEDED)
def test_what_the_code_imports_is_locked(kind):
    needed = set().union(*(imported(path.read_text()) for path in (ROOT / "src").rglob("*.py"))) - NOT_NEEDED[kind]
    locked = set(re.findall(r"^([\w.-]+)==", read(kind, "lock"), re.M))
    assert len(needed) > 10
    assert needed <= locked


def test_conda_installs_what_the_cpu_lock_is_made_from():
    guide = (ROOT / "docs" / "guides" / "containers.md").read_text()
    resolved = shlex.split(only(r"`pip install .* --report report\.json (.*)`\nresolves `cpu\.lock`", guide))
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (lines,) = (part["pip"] for part in conda if isinstance(part, dict))
    installed = [line.removeprefix("--editable ") for line in lines if not line.startswith("--extra-index-url")]
    assert installed == resolved


def test_imports_are_found():
    code = "import os, yaml\nfrom . import a\nfrom dice import b\ndef f():\n    from torch.utils.tensorboard import c\n"
    assert imported(code) == {"pyyaml", "torch", "tensorboard"}


def without_image(rules: str) -> set[str]:
    """Rules that name no image of the list. `image(...)` itself falls back to a local build of that kind."""
    found = set()
    for name, body in re.findall(r"^ *rule (\w+):\n(.*?)(?=^ *rule |\Z)", rules, re.M | re.S):
        named = re.search(r"container:\s+image\(([^)]*)\)", body)
        kinds = set(re.findall(r'"(\w+)"', named.group(1))) if named else set()
        if not kinds or not kinds <= set(IMAGES):
            found.add(name)
    return found


def test_every_rule_has_an_image():
    rules = "\n".join(path.read_text() for path in sorted((ROOT / "experiments" / "rules").glob("*.smk")))
    assert len(re.findall(r"^ *rule \w+:", rules, re.M)) > 20
    assert without_image(rules) == set()
    assert without_image(rules.replace('image("tex")', 'image("latex")')) == {"paper"}
    assert without_image('rule a:\n    output: 1\nrule b:\n    container:\n        image("cpu")\n') == {"a"}
