"""Shared by the execution tests: a small problem, and candidates for it made by editing an honest one."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

from dice.kernels.builder.resource_usage import Multiprocessor
from dice.kernels.records.explanation import KernelUse
from dice.kernels.records.extension import BuildResult, ExtensionRequest
from dice.kernels.records.job import Job

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return [64]
"""

HONEST = """
import torch
import torch.nn as nn
# import


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)
        # init

    def forward(self, x):
        # forward
        return torch.relu(self.linear(x))
"""

FORBID_NAMESPACES = """
from dice.kernels.sandbox import linux, seccomp

refused = seccomp._REFUSED
for name in list(refused):
    if name not in ("unshare", "mount", "setns", "pivot_root"):
        del refused[name]
seccomp._ABSENT.clear()
linux.no_new_privileges()
linux.install_seccomp(seccomp.filter_program(allow_internet_sockets=True))
"""  # what a container's usual filter does, for this process and those below it


def honest_with(import_: str = "", init: str = "", forward: str = "") -> str:
    """The honest candidate with lines put into its module, `__init__` and `forward`."""

    def indented(lines: str, by: int) -> str:
        return "\n".join(" " * by + line if index else line for index, line in enumerate(lines.strip("\n").split("\n")))

    code = HONEST
    for marker, lines, by in (("# import", import_, 0), ("# init", init, 8), ("# forward", forward, 8)):
        code = code.replace(marker, indented(lines, by) if lines else marker)
    return code


def program(name: str, init: str, forward: str, names: str = "x", inputs: str = "lambda: [torch.randn(16, 24)]") -> str:
    """A problem (`Model`) or a candidate (`ModelNew`) of one expression; `init`: lines of its constructor."""
    body = textwrap.indent(textwrap.dedent(init).strip() or "pass", " " * 8)
    return (
        f"import torch\nimport torch.nn as nn\nclass {name}(nn.Module):\n    def __init__(self):\n"
        f"        super().__init__()\n{body}\n    def forward(self, {names}):\n        return {forward}\n"
        f"get_inputs = {inputs}\ndef get_init_inputs():\n    return []\n"
    )


def job(code: str | None, problem: str = PROBLEM, sample: int = 0) -> Job:
    """A job for the small problem."""
    return Job(problem_id="level1/1_small", problem_code=problem, sample=sample, code=code)


class NoBuilder:
    """For candidates that ask for no extension: refuses every request."""

    def known(self, request: ExtensionRequest) -> BuildResult | None:
        """None: nothing is kept."""
        return None

    def build(self, request: ExtensionRequest) -> BuildResult:
        """As the real builder answers a source that does not compile."""
        return BuildResult(status="compile_error", key=request.digest(), route="stock", message="no compiler here")

    def kernel_uses(self, result: BuildResult, processor: Multiprocessor) -> list[KernelUse]:
        """None: nothing was built."""
        return []


def processes() -> set[tuple[int, str]]:
    """(pid, command line) of every process of the machine, kernel threads left out."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                command = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if command:
                found.add((int(name), command))
    return found
