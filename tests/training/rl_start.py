"""A start for reinforcement learning that is right part of the time: one prompt, two answers learnt by heart.

Both answers build and run; one computes what is asked and one does not, so a model fine-tuned on both draws either.
"""

from __future__ import annotations

from pathlib import Path

from dice.config import parse_config
from dice.data.pair import Pair
from dice.data.tokenizer import save_tokenizer, train_tokenizer
from dice.evaluation.prompts import PromptConfig, Task, make_answer, make_prompts
from dice.jsonl import write_jsonl
from dice.training.history import read_history
from dice.training.rl_history import RlRow
from dice.training.sft import sft
from dice.training.sft_config import SftConfig

PYTORCH = """import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return {expression}

def get_inputs():
    return [torch.randn(64)]

def get_init_inputs():
    return []
"""
PREFIX = """import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

"""
MIDDLE = '''source = """
#include <torch/extension.h>
__global__ void kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = BODY;
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    kernel<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""'''
SUFFIX = """
module = load_inline(name="op", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source,
                     functions=["run"])

class ModelNew(nn.Module):
    def forward(self, x):
        return module.run(x)
"""
PROGRAMS = {"double": ("x * 2", "x[i] * 2.0f"), "square": ("x * x", "x[i] * x[i]")}
WRONG = {"double": "x[i] * 5.0f", "square": "x[i] * x[0]"}
"""One token of the right answer is another: how often a model draws it is then what it has learnt, half of the time."""
GEOMETRY = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
GEOMETRY |= {"num_key_value_heads": 2, "head_dim": 32}


def pair(name: str, body: str | None = None, suffix: str = "") -> Pair:
    expression, right = PROGRAMS[name]
    middle = MIDDLE.replace("BODY", body or right)
    return Pair(
        id=name + suffix,
        pytorch_code=PYTORCH.format(expression=expression),
        cuda_code=PREFIX + middle + SUFFIX,
        source="test",
        level=1,
        prefix=PREFIX,
        middle=middle,
        suffix=SUFFIX,
    )


def make_start(folder: Path, *, steps: int = 120) -> Path:
    """`folder`/sft/model, and `folder`/problems.jsonl with what is asked."""
    both = [pair(name) for name in PROGRAMS] + [pair(name, WRONG[name], "-wrong") for name in PROGRAMS]
    write_jsonl(folder / "pairs.jsonl", both)
    write_jsonl(folder / "problems.jsonl", both[: len(PROGRAMS)])
    prompt = PromptConfig(style="compact")
    texts = [p.cuda_code for p in both]
    texts += make_prompts([Task(p.pytorch_code) for p in both], prompt)
    texts += make_prompts([Task(p.pytorch_code, p.prefix, p.suffix) for p in both], prompt)
    texts += [make_answer(p.middle or "", prompt) for p in both]
    save_tokenizer(train_tokenizer(texts, 900), folder / "tokenizer")
    values = {
        "pairs": [str(folder / "pairs.jsonl")],
        "tokenizer": str(folder / "tokenizer"),
        "out": str(folder / "sft"),
        "geometry": GEOMETRY,
        "prompt": {"style": "compact"},
        "task": "both",
        "window": 1024,
        "packs_per_step": 1,
        "max_steps": steps,
        "noise_per": "block",
        "epsilon": 0.1,
        "optimizer": {"learning_rate": 1e-2},
        "schedule": "cosine",
        "device": "cpu",
        "tensorboard": False,
    }
    sft(parse_config(SftConfig, values, "start"))
    return folder


CLOCKS = {"seconds", "rollout_s", "verify_s", "wait_s", "pool_s", "update_s", "wait_share"}
"""Fields of a step that say how long something took."""


def settings(start: Path, out: Path, builds: Path | None = None, **changes) -> dict:
    """Settings of `dice rl` for a run of two steps from `start`."""
    problems = [str(start / "problems.jsonl")]
    values = {
        "model": str(start / "sft" / "model"),
        "out": str(out),
        "phases": [
            {"task": "infilling", "problems": problems, "steps": 1, "order": "paper"},
            {"task": "end_to_end", "problems": problems, "steps": 1, "order": "paper"},
        ],
        "prompt": {"style": "compact"},
        "rollout": {"problems_per_step": 2, "samples": 6, "max_new_tokens": 220, "max_batch": 12},
        "reward": {
            "backend": "cpu",
            "judging": {"correctness_trials": 1, "measure_time": False, "seed": 3},
            "machine": {"jobs": 2, "cache": str(builds) if builds else None},
        },
        "objective": {"updates_per_step": 2},
        "optimizer": {"learning_rate": 1e-3},
        "device": "cpu",
        "save_every": 1,
        "tensorboard": False,
    }
    return values | changes


def curve(out: Path) -> list[dict]:
    """The history without its clocks."""
    return [row.model_dump(exclude=CLOCKS) for row in read_history(out, RlRow)]
