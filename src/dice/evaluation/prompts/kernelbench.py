"""KernelBench's own one-shot prompt, made by the constructor of a given checkout, byte for byte.

The constructor runs in another process (`kernelbench_runner.py`). Its package imports clients of language models, torch
and more that prompts do not need; these imports get empty stand-ins, so nothing has to be installed and no service is
contacted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dice.errors import DiceError

LAYOUTS = (
    ("src", "kernelbench", "prompt_constructor_toml"),  # since 2025-12
    ("", "src", "prompt_constructor_toml"),  # 2025-11 to 2025-12
    ("", "src", "prompt_constructor"),  # before, v0 and v0.1 among them
)
"""(folder of the package below the checkout, package, module), newest first."""
_RUNNER = Path(__file__).with_name("kernelbench_runner.py")


def find_constructor(checkout: str | Path) -> tuple[Path, str, str]:
    """(folder to import from, package, module) of the prompt constructor. Raises DiceError when there is none."""
    root = Path(checkout)
    for base in (root, root / "evaluation"):  # the authors keep their copy in evaluation/
        for folder, package, module in LAYOUTS:
            if (base / folder / package / f"{module}.py").is_file():
                return (base / folder).resolve(), package, module
    looked = ", ".join("/".join(filter(None, layout)) + ".py" for layout in LAYOUTS)
    raise DiceError(f"{checkout}: no prompt constructor of KernelBench there (looked for {looked}).")


def kernelbench_prompts(checkout: str | Path, codes: Sequence[str], *, timeout_s: float = 120) -> list[str]:
    """KernelBench's CUDA one-shot prompt (fp32) for each program. Raises DiceError when its constructor fails."""
    folder, package, module = find_constructor(checkout)
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch) / "prompts.json"
        try:
            done = subprocess.run(
                [sys.executable, "-I", str(_RUNNER), str(folder), package, module, str(answer)],
                input=json.dumps(list(codes)),
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=timeout_s,
                check=False,
                cwd=scratch,
            )
        except subprocess.TimeoutExpired as error:
            raise DiceError(f"{folder}: KernelBench's prompt constructor ran for more than {timeout_s:g} s.") from error
        if done.returncode != 0 or not answer.is_file():
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise DiceError(f"{folder}: KernelBench's prompt constructor failed ({last}).")
        prompts = json.loads(answer.read_text(encoding="utf-8"))
    if len(prompts) != len(codes) or not all(isinstance(prompt, str) for prompt in prompts):
        raise DiceError(f"{folder}: KernelBench's prompt constructor gave no text for some programs.")
    return prompts
