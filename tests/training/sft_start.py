"""Small data for fine-tuning: programs that apply one operator, and answers that do the same."""

from __future__ import annotations

import socket
from pathlib import Path

from dice.data.pair import Pair
from dice.data.tokenizer import save_tokenizer, train_tokenizer
from dice.jsonl import write_jsonl
from dice.training.history import HistoryRow, read_history

TINY = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
TINY |= {"num_key_value_heads": 1, "head_dim": 16}
REFERENCE = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x {op} {n}\n"
ANSWER = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x {op} {n} + 0\n"


def free_port() -> int:
    """A TCP port of this machine that nobody uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def make_data(folder: Path) -> Path:
    """`folder`/pairs.jsonl and `folder`/tokenizer."""
    pairs = [
        Pair(
            id=f"{op}{n}", pytorch_code=REFERENCE.format(op=op, n=n), cuda_code=ANSWER.format(op=op, n=n), source="test"
        )
        for op in "+-*/"
        for n in range(8)
    ]
    write_jsonl(folder / "pairs.jsonl", pairs)
    texts = [text for pair in pairs for text in (pair.pytorch_code, pair.cuda_code)]
    save_tokenizer(train_tokenizer(texts, 400), folder / "tokenizer")
    return folder


def settings(data: Path, out: Path, **changes) -> dict:
    """What `dice sft` is told."""
    values = {
        "pairs": [str(data / "pairs.jsonl")],
        "tokenizer": str(data / "tokenizer"),
        "out": str(out),
        "geometry": TINY,
        "prompt": {"style": "compact"},
        "window": 256,
        "packs_per_step": 4,
        "max_steps": 6,
        "optimizer": {"learning_rate": 3e-3},
        "device": "cpu",
        "tensorboard": False,
    }
    return values | changes


def losses(out: Path) -> list[float]:
    """The curve."""
    return [row.loss for row in read_history(out, HistoryRow)]
