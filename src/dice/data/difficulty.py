"""`dice difficulty`: how hard is a program, on KernelBench's scale?

1  one operator
2  several operators in a chain, which can be fused
3  an architecture: several layers with weights, or one layer that is an architecture by itself (LSTM, attention)

A label in the data is used where there is one. Otherwise the level follows from the operators that the forward pass
applies, which `dice.data.operators` reads from the source; nothing is executed. The result names the one that was used.

The paper (section 4.2) had a language model, Mercury Coder, label its programs; neither prompt nor scale is published.
benchmarks/difficulty_agreement.py measures how far this rule agrees with the published labels.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict
from tqdm import tqdm

from dice.config import add_options, config_from, stage_config, to_spec
from dice.data.operators import operators_of_source
from dice.data.pair import OnBad, Pair
from dice.data.sources import data_file, label_of, read_source
from dice.errors import DiceError
from dice.jsonl import write_jsonl
from dice.manifest import Stopwatch, write_manifest

By = Literal["label", "source"]
DifficultyScale = Literal["level", "operators"]

FREE = frozenset(
    [
        "AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout", "Flatten", "Identity",
        "Unflatten", "arange", "as_tensor", "atleast_1d", "atleast_2d", "atleast_3d", "bool", "broadcast_tensors",
        "broadcast_to", "chunk", "clone", "contiguous", "cpu", "cuda", "detach", "double", "dropout", "empty",
        "empty_like", "equal", "expand", "expand_as", "eye", "flatten", "float", "full", "full_like", "getitem", "half",
        "imag", "int", "linspace", "long", "meshgrid", "narrow", "new_full", "new_ones", "new_tensor", "new_zeros",
        "ones", "ones_like", "rand", "rand_like", "randint", "randn", "randn_like", "real", "requires_grad", "reshape",
        "resolve_conj", "resolve_neg", "select", "setitem", "split", "split_with_sizes", "squeeze", "tensor",
        "tensor_split", "to", "type", "type_as", "unbind", "unflatten", "unsqueeze", "view", "view_as",
        "view_as_complex", "view_as_real", "zeros", "zeros_like",
    ]
)  # fmt: skip
"""Views, copies, conversions, constants, and layers that do nothing at inference: they need no kernel.

Permutations (`transpose`, `permute`) are not among them: they move data.
"""
WEIGHTED = frozenset(
    [
        "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Linear",
        "addmm", "baddbmm", "bilinear", "bmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
        "conv_transpose3d", "einsum", "linear", "matmul", "mm",
    ]
)  # fmt: skip
"""Matrix products and convolutions."""
COMPOSITE = frozenset(
    [
        "GRU", "GRUCell", "LSTM", "LSTMCell", "MultiheadAttention", "RNN", "RNNCell", "Transformer",
        "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
    ]
)  # fmt: skip
"""Layers that are architectures by themselves."""
ARCHITECTURE_WEIGHTED = 3
"""A program with this many matrix products and convolutions, or more, is an architecture."""
ARCHITECTURE_OPERATORS = 10
"""A program with this many operators, or more, is an architecture."""


class Difficulty(BaseModel):
    """The level of one program, and how it was found. A row of the stage's output."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str
    level: int | None
    """Level; None only where the code does not define `Model`. A label may also be 0 (the paper's data has one)."""
    by: By
    operators: int | None = None
    """Operators counted; None where a label was used."""
    weighted: int | None = None
    """Matrix products and convolutions among them."""
    reason: str | None = None
    """Why there is no level."""


def level_of(operators: Sequence[str]) -> int:
    """The level of a program that applies these operators."""
    counted = [name for name in operators if name not in FREE]
    weighted = sum(name in WEIGHTED for name in counted)
    if weighted >= ARCHITECTURE_WEIGHTED or len(counted) >= ARCHITECTURE_OPERATORS or COMPOSITE.intersection(counted):
        return 3
    return 1 if len(counted) <= 1 else 2


def difficulty_of(name: str, pytorch_code: str) -> Difficulty:
    """The level that follows from the operators of `pytorch_code`."""
    operators = operators_of_source(pytorch_code)
    if operators is None:
        return Difficulty(id=name, level=None, by="source", reason="the code defines no class Model")
    counted = [one for one in operators if one not in FREE]
    return Difficulty(
        id=name,
        level=level_of(operators),
        by="source",
        operators=len(counted),
        weighted=sum(one in WEIGHTED for one in counted),
    )


def difficulties(pairs: Iterable[Pair], use_labels: bool = True) -> Iterator[Difficulty]:
    """The level of every pair's PyTorch program."""
    for pair in pairs:
        label = label_of(pair) if use_labels else None
        if label is not None:
            yield Difficulty(id=pair.id, level=label, by="label")
        else:
            yield difficulty_of(pair.id, pair.pytorch_code)


@stage_config
class DifficultyConfig:
    """Settings of `dice difficulty`."""

    data: str
    """File of pairs or programs, folder with one data file, or `hub`."""
    format: str = "pairs"
    """Row format of `data`: `pairs`, `concur`, `cudallm`, `structural`, `end_to_end` or `infilling`."""
    use_labels: bool = True
    """Use the data's own labels where it has them."""
    on_bad: OnBad = "refuse"
    """What to do with bad rows: `refuse` the file, or `skip` and report them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice difficulty`."""
    add_options(parser, DifficultyConfig, "data", "format", "on_bad", ignore_labels="use_labels")
    parser.add_argument("--out", required=True, help="where the levels are written, as JSON lines")


def run(args: argparse.Namespace) -> int:
    """Label every row of a file. Raises DiceError."""
    watch = Stopwatch()
    config = config_from(args, DifficultyConfig)
    path = data_file(config.format, config.data)
    pairs, bad = read_source(config.format, config.data, on_bad=config.on_bad, require_cuda=False)
    for row in bad:
        print(row)
    if not pairs:
        raise DiceError(f"{config.data}: no rows to label.")
    rows = list(tqdm(difficulties(pairs, config.use_labels), total=len(pairs), unit="program"))
    write_jsonl(args.out, rows)
    levels = Counter(str(row.level) for row in rows)
    by = Counter(row.by for row in rows)
    write_manifest(
        args.out,
        stage="difficulty",
        spec=to_spec(config),
        watch=watch,
        inputs=[path],
        extra={"levels": dict(levels), "by": dict(by), "bad_rows": len(bad)},
    )
    print(f"{len(rows)} programs: " + ", ".join(f"level {level}: {n}" for level, n in sorted(levels.items())))
    return 0
