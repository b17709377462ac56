"""Extraction: what a model's answer may look like, and what is not code."""

import random
import re
import time

import pytest

from dice.kernels.records.extract import extract_code, without_closed_reasoning

CODE = "import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
OTHER = "import os\nprint(os.name)\n"


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{CODE}```",
        f"Here it is:\n\n```python\n{CODE}```\nI hope that helps.",
        f"```\n{CODE}```",
        f"```python\n{CODE.rstrip()}``` Done.",
        f"~~~py\n{CODE}~~~\n",
        f"  ```python title=answer\n{CODE}```",
        f"````python\n{CODE}````",
        f"```cpp\n__global__ void k() {{}}\n```\nand\n```python\n{CODE}```",
        f"```python\n{OTHER}```\n```python\n{CODE}```\n```python\n{OTHER}```",
        f"<think>\n```python\n{OTHER}```\n</think>\n```python\n{CODE}```",
        f"```python\n{OTHER}```\n</think>\n```python\n{CODE}```",
        f"\r\n```python\r\n{CODE}```\r\n",
        f"```python\n{CODE}```\nand a faster one\n```python\n{CODE}# the second\n```",
        CODE,
        f"Sure! Here is the kernel.\n\n{CODE}\nThis version is faster because it does less.",
        f"Explanation: fused.\n{CODE}",
    ],
)
def test_finds_the_module(text):
    found = extract_code(text)
    assert found.code is not None, found.reason
    assert found.code.strip() == CODE.strip()


def test_code_is_taken_byte_for_byte_from_the_block():
    code = CODE + "\n# tabs\t and  spaces  \nx = '''\n  ~~~ not a fence\n'''\n"
    assert extract_code(f"```python\n{code}```").code == code


def test_longer_fence_protects_inner_backticks():
    inner = CODE + 'DOC = """\n```\nexample\n```\n"""\n'
    assert extract_code(f"````python\n{inner}````").code == inner


def test_unclosed_fence_is_kept():
    found = extract_code(f"```python\n{CODE}")
    assert found.code is not None
    assert found.code.strip() == CODE.strip()


def test_inline_fence():
    found = extract_code("answer ```class ModelNew: x = 1```")
    assert found.code is not None
    assert "ModelNew" in found.code


def test_block_without_modelnew_is_still_code():
    assert extract_code(f"```python\n{OTHER}```").code == OTHER
    assert extract_code(f"```python\n{OTHER}```\n```python\nx = 1\n```").code == OTHER


def test_reasoning_is_dropped_wherever_it_stands():
    draw = random.Random(7)
    for _ in range(3000):
        text = "".join(draw.choices(["<think>", "</think>", "a", "b", "\n", "<"], k=draw.randrange(14)))
        by_rule = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL).rpartition("</think>")[2]
        assert without_closed_reasoning(text) == by_rule, text


def test_reasoning_that_never_ends_is_read_in_time():
    started = time.process_time()
    assert "never ends" in extract_code("<think>\n" * 100_000).reason
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "text", ["~" * 200_000 + "`", "~~~" + " " * 200_000 + "`", "~~~" + "a" * 200_000 + "`", "a ```" + " " * 200_000]
)
def test_what_only_begins_like_a_block_is_read_once(text):
    assert extract_code(text).code is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("   \n", "empty"),
        ("I cannot write this kernel.", "no fenced block"),
        ("```cpp\nint main() {}\n```", "no Python"),
        ("```python\n```", "empty"),
        (f"<think>\n{CODE}", "never ends"),
        ("class ModelNew is what you asked for, but here is an (unclosed", "no fenced block"),
    ],
)
def test_no_code_has_a_reason(text, reason):
    found = extract_code(text)
    assert found.code is None
    assert reason in found.reason
