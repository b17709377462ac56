"""What is asked of the machine for a message, and what could be read there again."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.said import only_said
from dice.kernels.checks.tampering import tampering_findings

CANDIDATE = """
import logging, platform, sys
from torch.utils.cpp_extension import load_inline

LOG = logging.getLogger(__name__)
SAID = []
LOG.info("on %s", platform.node())
print(f"run as {sys.argv}")
ext = load_inline(name="ext", cpp_sources="", functions=["f"], verbose="-v" in sys.argv)


class ModelNew:
    def forward(self, x):
        return ext.f(x)
"""


def sniffs(code: str) -> bool:
    return "environment_sniffing" in {item.name for item in tampering_findings(PythonSource(code))}


@pytest.mark.parametrize(
    ("old", "new"),
    [("", ""), ("LOG.info", "LOG.warning"), ("LOG.info(", "sys.stderr.write("), ("print(", "LOG.debug(")],
)
def test_only_a_message(old: str, new: str) -> None:
    assert not sniffs(CANDIDATE.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("platform.node())", "(HOST := platform.node()))"),
        ("platform.node())", "SAID.append(platform.node()))"),
        ("platform.node())", "platform.node() or SAID)"),
        ("LOG.info", "SAID.insert"),
        ("LOG.info", "note"),
        ("LOG.info(", "HOST = LOG.info("),
        ("SAID = []", "SAID = []\nLOG.info = SAID.append"),
        ("SAID = []", "SAID = []\ndef print(*said):\n    SAID.extend(said)"),
        ("SAID = []", "class Own(logging.Handler):\n    pass\nLOG.addHandler(Own())"),
        ("SAID = []", "class Own(str):\n    def __format__(self, spec):\n        return spec"),
        ("SAID = []", "sys.stdout = open('said', 'w')"),
        ('sys.argv}")', 'sys.argv}", file=SAID)'),
        ("print(", "import warnings\nwarnings.warn("),
        ('print(f"run as {sys.argv}")', 'RUN = f"{sys.argv}"'),
        ('verbose="-v" in sys.argv', 'with_cuda="-v" in sys.argv'),
        ('verbose="-v" in sys.argv', "verbose=SAID.append(sys.argv)"),
        ("SAID = []", "def load_inline(**given):\n    SAID.append(given)"),
    ],
)
def test_it_can_be_read_again(old: str, new: str) -> None:
    changed = CANDIDATE.replace(old, new, 1)
    assert changed != CANDIDATE
    assert sniffs(changed)


def test_each_question_is_judged_by_its_place() -> None:
    source = PythonSource(CANDIDATE)
    asked = [node for node in source.nodes if isinstance(node, ast.Attribute | ast.Call)]
    said = sorted({ast.unparse(node) for node in asked if only_said(source, node)})
    assert said == ["platform.node()", "sys.argv"]
