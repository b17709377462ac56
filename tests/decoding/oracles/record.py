"""Records what the vendors' loops give, for tests/decoding/test_vendors.py. Run from the repository:

    PYTHONPATH=<transformers 4.57.6>:src:tests:tests/decoding/oracles python -m record <folder of checkouts>

The folder has dLLM-RL (Gen-Verse/dLLM-RL at 10b4fd1: LLaDA's, Dream's and SDAR's modelling files, Dream's loop), LLaDA
(ML-GSAI/LLaDA at b7e6c35: generate.py), DICE (deadlykitten4/DICE at 1abe887: SDAR's loop), WeDLM (Tencent/WeDLM at 0216110)
and Stable-DiffCoder (the hub's modeling_stable_diffcoder.py of March 2026). Newer versions of transformers run none of them,
and SDAR's takes 4.52.4; the tests need neither.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from pathlib import Path
from typing import Any

import torch
import transformers
import vendors
from vendor_checkpoints import VOCAB

MODES = ("ours", "released")
SOURCES = {
    "llada": "ML-GSAI/LLaDA b7e6c35, Gen-Verse/dLLM-RL 10b4fd1",
    "dream": "Gen-Verse/dLLM-RL 10b4fd1",
    "stable_diffcoder": "ByteDance-Seed/Stable-DiffCoder-8B-Instruct, March 2026",
    "sdar": "deadlykitten4/DICE 1abe887, Gen-Verse/dLLM-RL 10b4fd1",
    "wedlm": "Tencent/WeDLM 0216110",
}


def prompt_of(length: int, seed: int) -> list[int]:
    return random.Random(seed).choices(range(VOCAB - 8), k=length)


def cases(name: str) -> list[dict[str, Any]]:
    """The grid of one family; `mode`: our default, or the vendor's loop as it is."""
    grid: list[dict[str, Any]] = []
    if name == "llada":
        # (new, block, steps): one a token, fewer with and without remainder, more, one block, one token a block
        for shape, temperature, mode in itertools.product(
            ((24, 8, None), (24, 8, 9), (24, 8, 15), (16, 8, 48), (12, 12, 5), (8, 1, None)),
            (0.0, 0.7),
            MODES,
        ):
            new, block, steps = shape
            config = {
                "block_size": block,
                "steps": steps,
                "score": "low_confidence",
                "sampling": {"temperature": temperature},
            }
            grid.append({"new": new, "config": config, "mode": mode})
        for mode in MODES:
            config = {"block_size": 6, "steps": 8, "score": "random", "sampling": {"temperature": 0.0}}
            grid.append({"new": 24, "config": config, "mode": mode})
    elif name == "dream":
        base = {"steps": None, "eps": 1e-3, "position_temperature": 0.0, "algorithm": "entropy"}
        for algorithm, sampling, mode in itertools.product(
            ("entropy", "maskgit_plus", "topk_margin", "origin"),
            (
                {"temperature": 0.0, "top_p": 0.95, "top_k": 50},
                {"temperature": 0.2, "top_p": 0.95, "top_k": 50},
                {"temperature": 0.7, "top_p": 1.0, "top_k": 5},
                {"temperature": 1.0, "top_p": 0.6, "top_k": 0},
            ),
            MODES,
        ):
            grid.append({"new": 20, "config": base | {"algorithm": algorithm, "sampling": sampling}, "mode": mode})
        usual = {"temperature": 0.2, "top_p": 0.95, "top_k": 50}
        for changes in (
            {"steps": 7},
            {"steps": 1},
            {"steps": 45},
            {"steps": 12, "eps": 0.2},
            {"position_temperature": 0.5},
        ):
            for mode in MODES:
                grid.append({"new": 20, "config": base | {"sampling": usual} | changes, "mode": mode})
    elif name == "stable_diffcoder":
        for length, (block, steps), mode in itertools.product(range(4, 9), ((4, 4), (4, 2), (4, 3), (8, 8)), MODES):
            grid.append(
                {"new": 24, "length": length, "config": {"block_size": block, "denoising_steps": steps}, "mode": mode}
            )
    elif name == "sdar":
        # (block, steps, prompt): what is left of a prompt opens a block only where a step fills one mask
        shapes = ((4, 4, 4), (4, 4, 5), (4, 4, 7), (4, 2, 8), (4, 3, 4), (8, 8, 3), (8, 3, 8))
        greedy, plain = ({"temperature": 1.0, "top_k": top_k, "top_p": 1.0} for top_k in (1, 0))
        some = {"temperature": 0.7, "top_k": 9, "top_p": 0.8}
        # scores before the filters are ours alone, so that they are the vendor's only where nothing is filtered
        drawn = (*((sampling, "released") for sampling in (greedy, some, plain)), (plain, "ours"))
        for (block, steps, length), (sampling, mode) in itertools.product(shapes, drawn):
            for strategy, threshold in (("static", 0.9), ("dynamic", 0.9), ("dynamic", 0.3)):
                if strategy == "static" or block == steps:
                    config = {"block_size": block, "denoising_steps": steps, "strategy": strategy}
                    config |= {"threshold": threshold, "sampling": sampling}
                    grid.append({"new": 22, "length": length, "config": config, "mode": mode})
    else:
        for sampling, threshold, window in itertools.product(
            (
                {"temperature": 0.0, "top_p": 1.0, "top_k": 0},
                {"temperature": 0.2, "top_p": 1.0, "top_k": 0},
                {"temperature": 1.0, "top_p": 0.8, "top_k": 9},
            ),
            (None, 0.4, 1.5),
            (4, 16),
        ):
            config = {"threshold": threshold, "window": window, "position_penalty": 0.02, "sampling": sampling}
            grid.append({"new": 20, "config": config, "mode": "ours" if window == 16 else "released"})
    for number, case in enumerate(grid):
        case |= {"seed": 1000 + number, "ends": []}
        case["prompt"] = prompt_of(case.pop("length", 3 + number % 9), number)
    return grid


def record(root: Path, name: str) -> dict[str, Any]:
    model = vendors.load(root, name)
    run = getattr(vendors, name)
    ids = prompt_of(21, 77)
    logits = vendors.full_logits(name, model, ids)[[0, 10, 20], :6]
    found = []
    for case in cases(name):
        answer = run(root, model, case, case["mode"] == "ours")
        tokens, forwards = answer if isinstance(answer, tuple) else (answer, None)
        ends = [tokens[case["new"] * 2 // 3]]  # one that comes up two thirds into the answer
        found.append(case | {"tokens": tokens, "forwards": forwards})
        if name in ("llada", "dream"):  # loops that end nowhere; their callers cut the answer
            found[-1]["ends"] = ends
            continue
        case = case | {"ends": ends}
        answer = run(root, model, case, case["mode"] == "ours")
        tokens, forwards = answer if isinstance(answer, tuple) else (answer, None)
        found.append(case | {"tokens": tokens, "forwards": forwards})
    made_by = {"source": SOURCES[name], "torch": torch.__version__, "transformers": transformers.__version__}
    return {
        "made_by": made_by,
        "ids": ids,
        "logits": [[round(x, 5) for x in row] for row in logits.tolist()],
        "cases": found,
    }


def main() -> None:
    root, here = Path(sys.argv[1]), Path(__file__).parent
    for name in sys.argv[2:] or SOURCES:
        values = record(root, name)
        head = {key: value for key, value in values.items() if key != "cases"}
        lines = ",\n".join(json.dumps(case) for case in values["cases"])
        (here / f"{name}.json").write_text(f'{json.dumps(head)[:-1]}, "cases": [\n{lines}\n]}}\n')
        print(name, len(values["cases"]))


if __name__ == "__main__":
    main()
