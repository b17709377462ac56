"""Records what the vendors' loops give, for tests/decoding/test_vendors.py. Run from the repository:

    PYTHONPATH=<transformers 4.57.6>:src:tests:tests/decoding/oracles python -m record <folder of checkouts>

The folder has dLLM-RL (Gen-Verse/dLLM-RL at 10b4fd1: LLaDA's, Dream's and SDAR's modelling files, Dream's loop), LLaDA
(ML-GSAI/LLaDA at b7e6c35: generate.py), DICE (deadlykitten4/DICE at 1abe887: SDAR's loop), WeDLM (Tencent/WeDLM at 0216110)
and Stable-DiffCoder (the hub's modeling_stable_diffcoder.py of March 2026). Newer versions of transformers run none of them,
and SDAR's takes 4.52.4; the tests need neither. With the same versions it writes the same bytes.
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
LENGTHS = (1, 2, 5, 21, 64)
"""Tokens of the forwards whose logits are recorded."""
RAGGED = (1, 2, 13, 40)
"""Prompts that are decoded side by side: shorter and longer than a block."""
RAGGED_IN_BLOCKS = (4, 12, 24, 40)
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
    grid += ragged(name)
    for number, case in enumerate(grid):
        case |= {"seed": 1000 + number, "ends": []}
        case["prompt"] = prompt_of(case.pop("length", 3 + number % 9), number)
    return grid


def ragged(name: str) -> list[dict[str, Any]]:
    """Groups of one configuration and of prompts of all lengths, each greedy and sampled."""
    greedy, some = {"temperature": 0.0}, {"temperature": 0.7, "top_p": 0.8, "top_k": 9}
    configs: list[tuple[dict[str, Any], str]]
    if name == "llada":
        base = {"block_size": 8, "steps": 15, "score": "low_confidence"}
        configs = [(base | {"sampling": {"temperature": t}}, mode) for t in (0.0, 0.7) for mode in MODES]
    elif name == "dream":
        base = {"steps": 17, "eps": 1e-3, "position_temperature": 0.0}
        ways = (("entropy", greedy | {"top_p": 1.0, "top_k": 0}), ("maskgit_plus", some), ("origin", some))
        configs = [(base | {"algorithm": way, "sampling": how}, mode) for way, how in ways for mode in MODES]
    elif name == "stable_diffcoder":
        shapes = ((4, 4), (8, 8), (4, 2))
        configs = [({"block_size": b, "denoising_steps": s}, mode) for b, s in shapes for mode in MODES]
    elif name == "sdar":
        base = {"block_size": 4, "threshold": 0.4, "strategy": "static"}
        shapes = ((4, "static"), (4, "dynamic"), (2, "static"))
        first, plain = {"temperature": 1.0, "top_k": 1, "top_p": 1.0}, {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
        drawn = ((first, "released"), (some, "released"), (plain, "ours"))
        configs = [
            (base | {"denoising_steps": steps, "strategy": strategy, "sampling": how}, mode)
            for (steps, strategy), (how, mode) in itertools.product(shapes, drawn)
        ]
    else:
        base = {"position_penalty": 0.02}
        ways = ((0.4, 16, greedy | {"top_p": 1.0, "top_k": 0}), (0.4, 16, some), (1.5, 4, some))
        configs = [
            (base | {"threshold": threshold, "window": window, "sampling": how}, "ours" if window == 16 else "released")
            for threshold, window, how in ways
        ]
    return [
        {"new": 40, "length": length, "config": config, "mode": mode, "group": group}
        for group, (config, mode) in enumerate(configs)
        for length in (RAGGED_IN_BLOCKS if config.get("denoising_steps") == 2 and name == "sdar" else RAGGED)
    ]


def batches(name: str) -> list[list[dict[str, Any]]]:
    """Rows that the vendor's loop decodes in one batch: two to four prompts of unequal lengths, the longest anywhere."""
    configs: list[tuple[int, dict[str, Any], str]] = []
    if name == "llada":
        shapes = ((24, 8, None), (24, 8, 15), (16, 8, 48), (12, 12, 5))
        ways = (("low_confidence", 0.0), ("low_confidence", 0.7), ("random", 0.0))
        for (new, block, steps), (score, t), mode in itertools.product(shapes, ways, MODES):
            how = {"block_size": block, "steps": steps, "score": score, "sampling": {"temperature": t}}
            configs.append((new, how, mode))
    elif name == "dream":
        usual = {"top_p": 0.95, "top_k": 50}
        samplings = (
            (usual | {"temperature": 0.0}, ("ours",)),
            (usual | {"temperature": 0.2}, ("ours",)),  # top-p makes ties, which torch.topk breaks otherwise in a batch
            ({"temperature": 0.7, "top_p": 1.0, "top_k": 5}, MODES),
        )
        ways = [{"algorithm": way} for way in ("entropy", "maskgit_plus", "topk_margin", "origin")]
        ways += [{"steps": 7}, {"steps": 45}, {"position_temperature": 0.5}]
        base = {"steps": None, "eps": 1e-3, "position_temperature": 0.0, "algorithm": "entropy"}
        for changes, (sampling, modes) in itertools.product(ways, samplings):
            configs += [(20, base | changes | {"sampling": sampling}, mode) for mode in modes]
    elif name == "wedlm":
        samplings = ({"temperature": 0.0, "top_p": 1.0, "top_k": 0}, {"temperature": 0.7, "top_p": 0.8, "top_k": 9})
        for sampling, threshold, window in itertools.product(samplings, (None, 0.4, 1.5), (4, 16)):
            how = {"threshold": threshold, "window": window, "position_penalty": 0.02, "sampling": sampling}
            configs.append((20, how, "ours" if window == 16 else "released"))
    lengths = ((13, 1), (2, 21, 7), (30, 3, 9, 1))
    return [
        [
            {"new": new, "config": how, "mode": mode, "batch": number, "seed": 5000 + 10 * number + row, "ends": []}
            | {"prompt": prompt_of(length, 5000 + 10 * number + row)}
            for row, length in enumerate(lengths[number % 3])
        ]
        for number, (new, how, mode) in enumerate(configs)
    ]


def forward(name: str, model: Any, length: int) -> dict[str, Any]:
    """Logits of the first tokens of the vocabulary, at the first, the middle and the last position."""
    ids = prompt_of(length, 77)
    logits = vendors.full_logits(name, model, ids)[[0, length // 2, length - 1], :6]
    return {"ids": ids, "logits": [[round(x, 5) for x in row] for row in logits.tolist()]}


def answers(root: Path, name: str, model: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of one configuration with the vendor's tokens, decoded in one batch."""
    given = getattr(vendors, name)(root, model, rows, rows[0]["mode"] == "ours")
    given = [answer if isinstance(answer, tuple) else (answer, None) for answer in given]
    return [row | {"tokens": tokens, "forwards": n} for row, (tokens, n) in zip(rows, given, strict=True)]


def record(root: Path, name: str) -> dict[str, Any]:
    model = vendors.load(root, name)
    found = []
    for rows in [[case] for case in cases(name)] + batches(name):
        answered = answers(root, name, model, rows)
        first = answered[0]
        ends = [first["tokens"][first["new"] * 2 // 3]]  # one that comes up two thirds into the first answer
        if name in ("llada", "dream"):  # loops that end nowhere; their callers cut the answer
            found += [row | {"ends": ends} for row in answered]
        else:
            found += answered + answers(root, name, model, [row | {"ends": ends} for row in rows])
    made_by = {"source": SOURCES[name], "torch": torch.__version__, "transformers": transformers.__version__}
    return {
        "made_by": made_by,
        "forwards": [forward(name, model, length) for length in LENGTHS],
        "cases": found,
    }


def main() -> None:
    root, here = Path(sys.argv[1]), Path(__file__).parent
    torch.set_num_threads(1)  # products are so small that threads only wait for each other
    for name in sys.argv[2:] or SOURCES:
        values = record(root, name)
        head = {key: value for key, value in values.items() if key != "cases"}
        lines = ",\n".join(json.dumps(case) for case in values["cases"])
        (here / f"{name}.json").write_text(f'{json.dumps(head)[:-1]}, "cases": [\n{lines}\n]}}\n')
        print(name, len(values["cases"]))


if __name__ == "__main__":
    main()
