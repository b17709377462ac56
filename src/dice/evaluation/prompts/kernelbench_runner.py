"""Runs in a process of its own: python -I kernelbench_runner.py FOLDER PACKAGE MODULE ANSWER < codes.json

Imports the prompt constructor of a KernelBench checkout and writes the prompts as a JSON list to ANSWER. Uses the
standard library only.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import tomllib
from pathlib import Path
from unittest.mock import MagicMock


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives an empty module for every import that is neither in the standard library nor in the checkout."""

    def __init__(self, package):
        self.package = package

    def find_spec(self, fullname, path=None, target=None):
        top = fullname.partition(".")[0]
        if top == self.package or top in sys.stdlib_module_names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        return MagicMock(name=spec.name, __path__=[], __spec__=spec)

    def exec_module(self, module):
        pass


def main():
    folder, package, module_name, answer = sys.argv[1:]
    codes = json.load(sys.stdin)
    sys.path.insert(0, folder)
    sys.modules["tomli"] = tomllib  # the same parser under its name before Python 3.11
    sys.meta_path.insert(0, StandIns(package))
    constructor = importlib.import_module(f"{package}.{module_name}")
    if hasattr(constructor, "get_prompt_for_backend"):
        prompts = [
            constructor.get_prompt_for_backend(code, backend="cuda", option="one_shot", precision="fp32")
            for code in codes
        ]
    else:
        prompts = [constructor.prompt_generate_custom_cuda_from_prompt_template(code) for code in codes]
    Path(answer).write_text(json.dumps(prompts), encoding="utf-8")


if __name__ == "__main__":
    main()
