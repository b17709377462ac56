"""Tokenizers: published ones by their files, and the small byte-level BPE of the tiny and nano scales.

Control tokens are always used by id, from `SpecialIds`, because published tokenizers disagree about the strings: SDAR's
mask is `<|MASK|>` in one of its files and `<MASK>` in two others.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from dice.config import add_options, config_from, stage_config, to_spec
from dice.data.pair import OnBad, from_published, read_pairs
from dice.errors import DiceError
from dice.jsonl import read_object, write_text
from dice.manifest import Stopwatch, write_manifest
from dice.model.families import FAMILIES, Family, ModelType

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TOKENIZER_FILE = "tokenizer.json"
IDS_FILE = "special_ids.json"


class SpecialIds(BaseModel):
    """The control tokens of a model, by id."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    mask: int | None
    """Mask token of a diffusion model; None for an autoregressive one."""
    pad: int
    ends: tuple[int, ...]
    """Ids that end an answer."""


SMALL_SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|MASK|>", "<|pad|>")
"""Control tokens of the small tokenizer; an id is the position in this list."""
SMALL_IDS = SpecialIds(mask=3, pad=4, ends=(2, 0))
_N_BYTES = 256
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Where Qwen's byte-level BPE cuts text before merging (Qwen2 tokenizer.json): single digits, whole indentation."""


class CodeTokenizer:
    """Turns text into ids and back. `decode(encode(text)) == text` for a byte-level BPE without a normaliser."""

    def __init__(self, backend: Tokenizer, ids: SpecialIds, path: Path | None = None) -> None:
        size = backend.get_vocab_size(with_added_tokens=True)
        for name, value in (("mask", ids.mask), ("pad", ids.pad), *(("end", end) for end in ids.ends)):
            if value is not None and backend.id_to_token(value) is None:
                raise DiceError(f"{path or 'tokenizer'}: the {name} id {value} is no token (there are {size}).")
        self.backend = backend
        self.ids = ids

    @property
    def size(self) -> int:
        """One more than the largest id; a model's embedding may have more rows."""
        return max(self.backend.get_vocab(with_added_tokens=True).values()) + 1

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, where the strings of control tokens become control tokens (a prompt with chat markup)."""
        return self.backend.encode(_checked(text), add_special_tokens=False).ids

    def encode_plain(self, text: str) -> list[int]:
        """Ids of `text`, where the strings of control tokens stay plain text (code that spells them out)."""
        return self._plain.encode(_checked(text), add_special_tokens=False).ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each text, on all cores."""
        encoded = self.backend.encode_batch([_checked(text) for text in texts], add_special_tokens=False)
        return [encoding.ids for encoding in encoded]

    def decode(self, ids: Sequence[int], *, control: bool = True) -> str:
        """The text of `ids`, control tokens included, or (`control=False`) without them. No id is replaced; the released
        engine turns some into "!"."""
        return self.backend.decode(list(ids), skip_special_tokens=not control)

    def ends(self, ids: Sequence[int]) -> list[int]:
        """For each id, how many characters of `decode(ids)` end with it or before it; at the last id, all of them."""
        from tokenizers.decoders import DecodeStream

        stream, length, found = DecodeStream(skip_special_tokens=False), 0, []
        for one in ids:
            length += len(stream.step(self.backend, one) or "")
            found.append(length)
        if found:
            found[-1] = len(self.decode(ids))  # a character that was cut off is written as a mark
        return found

    @cached_property
    def _plain(self) -> Tokenizer:
        plain = type(self.backend).from_str(self.backend.to_str())
        plain.encode_special_tokens = True
        return plain


def _checked(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DiceError(f"text cannot be tokenized: {error.reason} at character {error.start}.") from error
    return text


def load_tokenizer(path: str | Path, *, family: ModelType | None = None) -> CodeTokenizer:
    """A tokenizer from a folder, or by name from the Hugging Face cache; nothing is downloaded, no code of theirs is run.

    The control tokens are those of the folder's special_ids.json; without that file those of `family`
    (dice.model.families). Raises DiceError.
    """
    folder, ids = Path(path), None
    if (folder / IDS_FILE).is_file():
        try:
            ids = SpecialIds.model_validate_json((folder / IDS_FILE).read_text(encoding="utf-8"))
        except ValidationError as error:
            raise DiceError(f"{folder / IDS_FILE}: {error.errors()[0]['msg']}.") from error
    elif family not in FAMILIES:
        raise DiceError(f"{path}: which tokens are mask, pad and end? Name its family: {', '.join(FAMILIES)}.")
    if (folder / TOKENIZER_FILE).is_file():
        from tokenizers import Tokenizer

        try:
            backend = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        except Exception as error:  # the library raises Exception itself for a file that it cannot read
            raise DiceError(f"{folder / TOKENIZER_FILE}: not a tokenizer ({error}).") from error
    else:
        backend = _from_transformers(str(path))
    return CodeTokenizer(backend, ids or family_ids(FAMILIES[cast(ModelType, family)], folder, backend), folder)


def family_ids(family: Family, folder: Path, backend: Tokenizer) -> SpecialIds:
    """Control tokens of a family's checkpoint. Raises DiceError where neither the table nor the checkpoint has an end, or its
    settings cannot be read."""
    ends = family.ends
    for name in () if ends else ("generation_config.json", "config.json"):
        if (folder / name).is_file():
            found = read_object(folder / name).get("eos_token_id")
            listed = found if isinstance(found, list) else [found] if found is not None else []
            if not all(type(one) is int for one in listed):
                raise DiceError(f"{folder / name}: eos_token_id must be an id or a list of ids, found {found!r}.")
            ends = ends or tuple(listed)
    if not ends:
        raise DiceError(f"{folder}: neither generation_config.json nor config.json says which token ends an answer.")
    strings = (backend.token_to_id(text) for text in family.end_strings)
    ends += tuple(end for end in strings if end is not None)
    return SpecialIds(mask=family.mask, pad=ends[0] if family.pad is None else family.pad, ends=ends)


def _from_transformers(name: str) -> Tokenizer:
    """Tokenizers without a tokenizer.json, and those in the hub's cache.

    vocab.json and merges.txt are Qwen2's byte-level BPE (SDAR, Dream); Dream's files name a class of its own for it, which
    would be remote code.
    """
    try:
        from transformers import AutoTokenizer, Qwen2TokenizerFast  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as error:
        raise DiceError(f"{name}: reading it needs 'transformers': pip install 'dice-repro[data]'.") from error
    bpe = all((Path(name) / file).is_file() for file in ("vocab.json", "merges.txt"))
    try:
        loaded = (Qwen2TokenizerFast if bpe else AutoTokenizer).from_pretrained(name, local_files_only=True)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DiceError(f"{name}: no tokenizer in local files ({reason}); give a folder that holds one.") from error
    backend = getattr(loaded, "backend_tokenizer", None)
    if backend is None:
        raise DiceError(f"{name}: its tokenizer has no fast form; save it as tokenizer.json first.")
    return backend


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> CodeTokenizer:
    """A byte-level BPE over `texts` with the control tokens SDAR needs; the same texts give the same tokenizer.

    Ids 0-4 are SMALL_SPECIALS, then the 256 bytes, then merges: any text can be encoded, and nothing is normalised.
    The vocabulary is smaller than `vocab_size` when no further pair occurs twice in the texts.
    Raises DiceError where it is too small for control tokens and bytes.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    smallest = len(SMALL_SPECIALS) + _N_BYTES
    if vocab_size < smallest:
        raise DiceError(f"vocab_size {vocab_size} is too small; control tokens and bytes are {smallest}.")
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        special_tokens=list(SMALL_SPECIALS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator((_checked(text) for text in texts), trainer)
    return CodeTokenizer(backend, SMALL_IDS)


def save_tokenizer(tokenizer: CodeTokenizer, folder: str | Path) -> None:
    """Write tokenizer.json, special_ids.json and what `transformers` needs to load the folder."""
    folder = Path(folder)
    token = tokenizer.backend.id_to_token
    ids = tokenizer.ids
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": token(ids.ends[0]),
        "pad_token": token(ids.pad),
        "clean_up_tokenization_spaces": False,
        "model_max_length": 10**30,
    }
    if ids.mask is not None:
        settings["mask_token"] = token(ids.mask)
    for name, text in (
        (IDS_FILE, ids.model_dump_json(indent=2)),
        ("tokenizer_config.json", json.dumps(settings, indent=2)),
        (TOKENIZER_FILE, tokenizer.backend.to_str(pretty=True)),
    ):
        write_text(folder / name, text + "\n")


@stage_config
class TokenizerConfig:
    """Settings of `dice tokenizer`."""

    pairs: tuple[str, ...]
    """Files of pairs; both programs of every pair are training text."""
    out: str
    """Folder to write the tokenizer to."""
    vocab_size: int = 4096
    """Largest number of tokens, control tokens and bytes included."""
    rows: int | None = None
    """Only the first rows of all files together; None: all."""
    on_bad: OnBad = "refuse"
    """`refuse` a file when a row is bad, or `skip` it."""


def make_tokenizer(config: TokenizerConfig) -> dict[str, Any]:
    """Train, count the training texts that decoding does not give back, and write; returns the statistics.

    Raises DiceError for files that cannot be read or have no rows.
    """
    watch = Stopwatch()
    if not config.pairs:
        raise DiceError("name at least one file of pairs (--pairs).")
    texts = list(_training_texts(config))
    if not texts:
        raise DiceError(f"{config.pairs[0]}: no rows to train on.")
    tokenizer = train_tokenizer(texts, config.vocab_size)
    encoded = tokenizer.encode_batch(texts)
    changed = sum(tokenizer.decode(ids) != text for ids, text in zip(encoded, texts, strict=True))
    lengths = sorted(len(ids) for ids in encoded)
    statistic = {
        "texts": len(texts),
        "vocab_size": tokenizer.size,
        "characters_per_token": round(sum(map(len, texts)) / max(1, sum(lengths)), 3),
        "tokens": {
            "median": statistics.median(lengths),
            "p95": lengths[min(len(lengths) - 1, len(lengths) * 95 // 100)],
            "max": lengths[-1],
        },
        "texts_changed_by_a_round_trip": changed,
    }
    save_tokenizer(tokenizer, config.out)
    target = Path(config.out) / TOKENIZER_FILE
    write_manifest(target, stage="tokenizer", spec=to_spec(config), watch=watch, inputs=config.pairs, extra=statistic)
    return statistic


def _training_texts(config: TokenizerConfig) -> Iterator[str]:
    """Both programs of the first `config.rows` pairs; every file is read, so that its bad rows are found."""
    left = config.rows
    for path in config.pairs:
        pairs, _ = read_pairs(path, on_bad=config.on_bad, require_cuda=False, convert=from_published("unknown"))
        for pair in pairs if left is None else pairs[: max(0, left)]:
            yield pair.pytorch_code
            if pair.cuda_code:
                yield pair.cuda_code
        left = None if left is None else left - len(pairs)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice tokenizer`."""
    add_options(parser, TokenizerConfig, "pairs", "out", "vocab_size", "rows", "on_bad")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice tokenizer`."""
    config = config_from(args, TokenizerConfig)
    statistic = make_tokenizer(config)
    print(
        f"{statistic['vocab_size']} tokens from {statistic['texts']} texts written to {config.out}: "
        f"{statistic['characters_per_token']} characters per token, median {statistic['tokens']['median']:g} tokens"
    )
    return 0
