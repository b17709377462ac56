"""Programs as HTML: what they say stays, and CUDA in a string is CUDA."""

from __future__ import annotations

import re
from html import unescape

import pytest

from dice.report.highlight import highlighted


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


@pytest.mark.parametrize(
    "code",
    [
        "",
        "x = 1",
        '\n\ns = """\n#include <a.h>\n__global__ void k() { a[0] = "q" < \'c\'; }\n"""\ny = f(s)\n',
        "s = '''\n__global__ void k() {}\n'''\nt = 'it' \"__global__\"\n",
        's = """__global__ void k() { never closed',
        'def f():\n    """A <b>docstring</b> & more."""\n',
        "not python at all ]] é 😀 \\ \x00 `",
    ],
)
def test_nothing_of_a_program_is_lost(code):
    assert text_of(highlighted(code)).rstrip("\n") == code.rstrip("\n")


def test_cuda_in_a_string_has_its_own_words():
    html = highlighted('s = """\n__global__ void k(float* x) { int i = 1; }\n"""\n')
    assert re.search(r'<span class="k\w?">__global__</span>', html)
    assert re.search(r'<span class="kt">float</span>', html)
    plain = highlighted('s = """\nvoid k(float* x) { int i = 1; }\n"""\n')
    assert "kt" not in plain
