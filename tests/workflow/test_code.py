"""Which files a stage depends on, and their digest."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from dice.errors import DiceError
from dice.kernels.problems.problem import Problem
from dice.kernels.records.verdict import Verdict
from dice.study.code import code_of, stage_code
from dice.study.fingerprint import fingerprint

ROOT = Path(__file__).resolve().parents[2]


def test_the_fingerprint_follows_contents_and_not_times(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "weights").write_text("1")
    (model / "model.manifest.json").write_text("today")
    (tmp_path / "data").write_text("x")
    paths = [str(model), str(tmp_path / "data")]
    first = fingerprint(paths)
    (model / "model.manifest.json").write_text("tomorrow")
    assert fingerprint(paths[::-1]) == first
    (model / "weights").write_text("2")
    assert fingerprint(paths) != first
    with pytest.raises(DiceError, match="no such"):
        fingerprint([str(tmp_path / "none")])


def package_of(folder, files):
    """A package `dice` of these files (name -> text) below `folder`."""
    for name, text in files.items():
        (folder / "dice" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "dice" / name).write_text(text)
    return folder / "dice"


def test_code_is_the_import_closure(tmp_path):
    files = {
        "__init__.py": "",
        "a.py": "from dice.sub import b\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import dice.unused\n",
        "sub/__init__.py": "",
        "sub/b.py": "def f():\n    from dice import lazy\n",
        "lazy.py": "",
        "unused.py": "",
        "other.py": "import dice.a\n",
    }
    package = package_of(tmp_path, files)
    found = [str(Path(path).relative_to(package)) for path in code_of("dice.a", package)]
    assert found == ["__init__.py", "a.py", "lazy.py", "sub/__init__.py", "sub/b.py"]


def test_stages_depend_on_what_they_import():
    def names(stage):
        return {str(Path(path).relative_to(ROOT / "src" / "dice")) for path in stage_code(stage)}

    assert "kernels/sandbox/isolation.py" in names("verify")
    assert "kernels/builder/csrc/extension/launch.cpp" in names("verify")
    assert "kernels/sandbox/isolation.py" not in names("score")
    assert "evaluation/score.py" not in names("verify")
    assert "training/losses.py" in names("sft")
    assert "training/losses.py" not in names("table")
    assert "data/leakage/heldout.yaml" in names("synth")
    assert "report/pages/explorer.js" in names("explorer")
    assert "report/pages/explorer.css" in names("explorer")


def test_parsed_files_are_cached_by_contents(tmp_path, monkeypatch):
    """A second process parses only what was edited; without a cache, or with a damaged one, it parses all files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    package = package_of(tmp_path, {"__init__.py": "", "a.py": "import dice.b\n", "b.py": "x = 1\n", "c.py": ""})
    script = (
        "import sys, pathlib, dice.study.code as code\n"
        "parse = code._parse\n"
        "code._parse = lambda file: print('parsed', file.name) or parse(file)\n"
        f"print(*(pathlib.Path(path).name for path in code.code_of('dice.a', pathlib.Path({str(package)!r}))))"
    )

    def printed():
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        *parsed, files = done.stdout.splitlines()
        return sorted(parsed), files.split()

    everything = ["parsed __init__.py", "parsed a.py", "parsed b.py"]
    assert printed() == (everything, ["__init__.py", "a.py", "b.py"])
    assert printed() == ([], ["__init__.py", "a.py", "b.py"])
    (package / "a.py").write_text("import dice.c\n")
    assert printed() == (["parsed a.py"], ["__init__.py", "a.py", "c.py"])
    (cache,) = (tmp_path / "cache" / "dice").iterdir()
    for damaged in ("{", "[]"):
        cache.write_text(damaged)
        assert printed()[1] == ["__init__.py", "a.py", "c.py"]
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert printed()[1] == ["__init__.py", "a.py", "c.py"]


def test_planning_imports_neither_torch_nor_the_builder():
    """What the Snakefile imports: planning would take twice as long."""
    modules = [f"dice.study.{path.stem}" for path in (ROOT / "src" / "dice" / "study").glob("[a-z]*.py")]
    unused = {"torch", "elftools", "dice.kernels.builder.builder"}
    script = f"import sys, {', '.join(modules)}\nprint(*{unused | {'dice.study.strata'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["dice.study.strata"]


def test_a_state_is_named_by_the_code_too():
    """So that no run resumes in what other code began."""
    rules = "".join(path.read_text() for path in (ROOT / "experiments" / "rules").glob("*.smk"))
    assert rules.count("$(dice fingerprint") == rules.count(
        "={params.state}-{params.code}-$(dice fingerprint {input:q})"
    )


def loaded_by(module):
    script = (
        f"import sys, {module}\n"
        "print('\\n'.join(m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'dice'))"
    )
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )


def test_the_closure_holds_what_python_really_loads():
    """Against the interpreter: every dice module that importing the stage loads is in the closure.

    `dice.kernels.api` loads all of the verifier; a stage depends only on the names that it imports from there.
    """
    closure = set(stage_code("score"))
    assert loaded_by("dice.evaluation.score") - loaded_by("dice.kernels.api") <= closure
    assert {inspect.getfile(Verdict), inspect.getfile(Problem)} <= closure


def test_who_imports_a_reexported_name_depends_on_where_it_comes_from(tmp_path):
    files = {
        "__init__.py": "",
        "a.py": "from dice.k.api import f\n",
        "b.py": "from dice.k import api\n",
        "k/__init__.py": "",
        "k/api.py": '"""Re-exports."""\nfrom dice.k.one import f\nfrom dice.k.two import g as h\n__all__ = ["f", "h"]\n',
        "k/one.py": "",
        "k/two.py": "",
    }
    package = package_of(tmp_path, files)

    def names(module):
        return [str(Path(path).relative_to(package)) for path in code_of(module, package)]

    assert names("dice.a") == ["__init__.py", "a.py", "k/__init__.py", "k/one.py"]
    assert names("dice.b") == ["__init__.py", "b.py", "k/__init__.py", "k/api.py", "k/one.py", "k/two.py"]


def test_a_module_that_does_more_than_reexport_counts(tmp_path):
    files = {
        "__init__.py": "",
        "a.py": "from dice.api import f\n",
        "api.py": "from dice.one import f\nx = 1\n",
        "one.py": "",
    }
    package = package_of(tmp_path, files)
    found = [Path(path).name for path in code_of("dice.a", package)]
    assert found == ["__init__.py", "a.py", "api.py", "one.py"]
