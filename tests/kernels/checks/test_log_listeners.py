"""What runs when the process ends: a listener of logging's own, or the candidate."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.log_listeners import stops_a_listener
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.tampering import tampering_findings

CANDIDATE = """
import atexit, logging, queue
import logging.handlers

LINES = queue.SimpleQueue()
LOG = logging.getLogger(__name__)
LOG.addHandler(logging.handlers.QueueHandler(LINES))
listener = logging.handlers.QueueListener(LINES, logging.StreamHandler())
listener.start()
atexit.register(listener.stop)


class ModelNew:
    def forward(self, x):
        return x
"""


def hooks(code: str) -> bool:
    return "process_hook" in {item.name for item in tampering_findings(PythonSource(code))}


@pytest.mark.parametrize(
    ("old", "new"),
    [("", ""), ("SimpleQueue", "Queue"), ("StreamHandler())", "StreamHandler(), respect_handler_level=True)")],
)
def test_a_listener_that_is_stopped(old: str, new: str) -> None:
    assert not hooks(CANDIDATE.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("listener.stop)", "lambda: print('done'))"),
        ("listener.stop)", "ModelNew.stop)"),
        ("listener.stop)", "listener.stop, 1)"),
        ("listener.stop)", "listener.handle)"),
        ("logging.StreamHandler())", "Own())"),
        ("logging.StreamHandler())", "logging.FileHandler('out'))"),
        ("queue.SimpleQueue()", "Own()"),
        ("listener.start()", "listener = Own()"),
        ("listener.start()", "listener.stop = print"),
        ("listener.start()", "logging.StreamHandler.emit = print"),
        ("listener.start()", "setattr(listener, 'stop', print)"),
        ("listener.start()", "listener.__dict__['stop'] = print"),
        ("class ModelNew", "class Own(logging.handlers.QueueListener):\n    pass\n\n\nclass ModelNew"),
        ("class ModelNew", "class Own:\n    def __str__(self):\n        return note()\n\n\nclass ModelNew"),
        ("logging.handlers.QueueListener(", "Own("),
    ],
)
def test_the_candidate_itself(old: str, new: str) -> None:
    changed = CANDIDATE.replace(old, new, 1)
    assert changed != CANDIDATE
    assert hooks(changed)


def test_the_call_alone_is_one() -> None:
    source = PythonSource(CANDIDATE)
    calls = [
        ast.unparse(node) for node in source.nodes if isinstance(node, ast.Call) and stops_a_listener(source, node)
    ]
    assert calls == ["atexit.register(listener.stop)"]
