"""Exact and near duplicates among pairs.

Whole pairs are compared, PyTorch and CUDA program together: one PyTorch program with two different kernels is two
examples. Both programs, with the CUDA source inside their Python strings, are reduced to tokens without comments,
docstrings and layout; names and numbers stay. Two pairs are

exact   duplicates when their tokens are the same,
near    duplicates when the Jaccard similarity of their sets of `shingle`-token windows is at least `threshold`.

MinHash with locality-sensitive hashing (datasketch; Broder 1997) proposes near duplicates, and each is confirmed on the
exact sets, so that the sketch can miss a pair but never drop one wrongly. Pairs are taken in the given order, and a pair
is dropped for an earlier one that was kept: sort them by preference. The result for the first pairs does not depend on
later ones, so the set of a stricter threshold is contained in that of a laxer one.
"""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from dice.config import stage_config
from dice.data.normal_form import drop_docstrings, normal_forms, rewritable_tree
from dice.data.source_string import CPP_COMMENT
from dice.errors import DiceError
from dice.manifest import sha256_text

if TYPE_CHECKING:
    from datasketch import MinHash, MinHashLSH

_TOKEN = re.compile(r"\w+|[^\w\s]")
_LSH_MARGIN = 0.1
"""The sketch searches below the threshold by this much, so that it misses few of the truly similar pairs."""


@stage_config
class DedupConfig:
    """When two pairs are the same."""

    threshold: float = Field(default=0.9, gt=0)
    """Jaccard similarity of shingle sets from which on two pairs are near duplicates; above 1: exact ones only."""
    shingle: int = Field(default=5, ge=1)
    """Tokens of one shingle."""
    permutations: int = 128
    """Hash functions of a MinHash; the error of an estimated similarity is about 1 / sqrt(permutations)."""
    seed: int = 1
    """Seed of the permutations."""


@dataclass(frozen=True)
class Duplicate:
    """A pair that was dropped, and the pair that it repeats."""

    id: str
    kind: Literal["exact", "near"]
    of: str
    similarity: float


@dataclass(frozen=True)
class Text:
    """One pair's programs and id. `near`: look for near duplicates too, not only for exact ones."""

    id: str
    pytorch_code: str
    cuda_code: str
    near: bool = True


def tokens_of(code: str) -> list[str]:
    """Tokens of a Python file without comments, docstrings and layout, then those of the C++ and CUDA in its long strings."""
    tree = rewritable_tree(code)
    if tree is None:
        return _TOKEN.findall(CPP_COMMENT.sub(" ", code))
    drop_docstrings(tree)
    embedded: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            embedded += _TOKEN.findall(CPP_COMMENT.sub(" ", node.value))
            node.value = ""
    return _TOKEN.findall(ast.unparse(tree)) + embedded


def pair_tokens(pytorch_code: str, cuda_code: str) -> list[str]:
    """The tokens that stand for a pair in comparisons."""
    return [*_TOKEN.findall(normal_forms(pytorch_code).text), "\n", *tokens_of(cuda_code)]


def shingles(tokens: list[str], length: int) -> np.ndarray:
    """Sorted distinct 32-bit hashes of all windows of `length` tokens; of all tokens where there are fewer."""
    windows = range(max(1, len(tokens) - length + 1))
    return np.unique(
        np.array(
            [zlib.crc32(" ".join(tokens[i : i + length]).encode("utf-8", "surrogatepass")) for i in windows],
            dtype=np.uint32,
        )
    )


def jaccard(a: np.ndarray, b: np.ndarray) -> float:
    """Size of the intersection over that of the union, for sorted sets."""
    common = np.intersect1d(a, b, assume_unique=True).size
    return common / (a.size + b.size - common)


def duplicates(texts: Iterable[Text], config: DedupConfig | None = None) -> list[Duplicate]:
    """The pairs to drop, in the order given. Raises DiceError where datasketch is missing or the settings suit no sketch."""
    config = config or DedupConfig()
    kept_by_tokens: dict[str, str] = {}
    kept: dict[str, np.ndarray] = {}
    found: list[Duplicate] = []
    sketches = _sketches(config) if config.threshold <= 1 else None
    for text in texts:
        tokens = pair_tokens(text.pytorch_code, text.cuda_code)
        identity = sha256_text("\x00".join(tokens))
        original = kept_by_tokens.get(identity)
        if original is not None:
            found.append(Duplicate(text.id, "exact", original, 1.0))
            continue
        if sketches is not None and text.near:
            empty, index = sketches
            mine, sketch = shingles(tokens, config.shingle), empty.copy()
            sketch.update_batch(mine.tolist())
            similar = [(jaccard(mine, kept[str(other)]), str(other)) for other in index.query(sketch)]
            best, other = max(similar, default=(0.0, ""))
            if best >= config.threshold:
                found.append(Duplicate(text.id, "near", other, round(best, 4)))
                continue
            kept[text.id] = mine
            index.insert(text.id, sketch)
        kept_by_tokens[identity] = text.id
    return found


def _sketches(config: DedupConfig) -> tuple[MinHash, MinHashLSH]:
    """The sketch of no shingle, and an empty index."""
    try:
        from datasketch import MinHash, MinHashLSH
    except ImportError as error:
        raise DiceError(
            "near duplicates need datasketch (the extra `data` of this package); "
            "install it, or set the threshold above 1 to drop exact duplicates only."
        ) from error
    threshold = max(0.1, config.threshold - _LSH_MARGIN)
    try:
        empty = MinHash(num_perm=config.permutations, seed=config.seed, hashfunc=int)
        return empty, MinHashLSH(threshold=threshold, num_perm=config.permutations)
    except ValueError as error:
        raise DiceError(
            f"{config.permutations} permutations with seed {config.seed} make no sketch for the threshold "
            f"{config.threshold:g} ({error}); 128 permutations do."
        ) from error
