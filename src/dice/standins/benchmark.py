"""A folder in the layout of KernelBench's version 0.1: problems, and the module that makes the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dice.evaluation.prompts import Task, render_prompt
from dice.jsonl import write_text
from dice.standins.programs import Solved

_PROGRAM = "PROGRAM_OF_THE_TASK = 1"
_CONSTRUCTOR = '''
"""Makes the prompt of a program, as the module of that name does in KernelBench; the text is not KernelBench's."""

import os

from .utils import read_file

PROMPT = read_file(os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts", "one_shot.txt"))


def prompt_generate_custom_cuda_from_prompt_template(ref_arch_src: str) -> str:
    return PROMPT.replace("{program}", ref_arch_src)
'''
_UTILS = '''
"""Imports, as KernelBench's module of that name does, what prompts do not need."""

import torch
from openai import OpenAI


def read_file(file_path) -> str:
    with open(file_path) as file:
        return file.read()
'''


def write_benchmark(folder: Path, problems: Sequence[Solved]) -> None:
    """Write the folder."""
    prompt = render_prompt(Task(_PROGRAM)).replace(_PROGRAM, "{program}")
    files = {
        "src/__init__.py": "",
        "src/prompt_constructor.py": _CONSTRUCTOR.lstrip(),
        "src/utils.py": _UTILS.lstrip(),
        "src/prompts/one_shot.txt": prompt,
    }
    files |= {f"KernelBench/level{one.level}/{one.number}_{one.name}.py": one.code for one in problems}
    for name, text in files.items():
        write_text(folder / name, text)
