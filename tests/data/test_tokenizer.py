"""Tokenizers: control tokens by id, exact round trips, training that repeats itself."""

import hashlib
import json
import subprocess
import sys

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from dice.cli import main
from dice.data.chat_template import checkpoint_chat
from dice.data.pair import Pair
from dice.data.tokenizer import (
    SMALL_SPECIALS,
    CodeTokenizer,
    SpecialIds,
    load_tokenizer,
    save_tokenizer,
    train_tokenizer,
)
from dice.errors import DiceError
from dice.jsonl import write_jsonl
from dice.manifest import manifest_path

CODE = [
    "import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return ext.f(x)\n" * 3,
    "__global__ void k(float* x, int n) {\n\tint i = blockIdx.x * 256 + threadIdx.x;\r\n\tif (i < n) x[i] *= 2.f;\n}\n"
    * 3,
]
SMALL = train_tokenizer(CODE, 350)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\t\tint i;\r\n\r\n",
        "  \n \t",
        "// 世界 🚀 é e\u0301 \u2028",
        "a\rb",
        "\0\x7f",
        "x[123456] <<<g, b>>>",
        *CODE,
    ],
)
def test_code_survives_a_round_trip(text):
    assert SMALL.decode(SMALL.encode(text)) == text
    assert SMALL.decode(SMALL.encode_plain(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", []), ("a", [1]), ("é", [0, 1]), ("🚀b", [0, 0, 0, 1, 2]), ("世", [0, 0, 1])],
)
def test_a_token_within_a_character_ends_before_it(text, expected):
    """Bytes that no merge joins, one token each."""
    assert SMALL.ends(SMALL.encode_plain(text)) == expected


def test_a_character_that_was_cut_off_counts_to_the_last_token():
    ids = SMALL.encode_plain("a🚀")[:-1]
    assert SMALL.ends(ids) == [1, 1, 1, len(SMALL.decode(ids))]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, SMALL.size - 1)))
def test_whatever_the_ids_ends_grow_up_to_the_text(ids):
    ends = SMALL.ends(ids)
    assert ends == sorted(ends)
    assert len(ends) == len(ids)
    assert not ids or ends[-1] == len(SMALL.decode(ids))


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_a_round_trip(text):
    ids = SMALL.encode_plain(text)
    assert SMALL.decode(ids) == text
    assert not set(ids) & set(range(len(SMALL_SPECIALS)))


def test_text_that_is_no_unicode_is_refused():
    with pytest.raises(DiceError, match="at character 1"):
        SMALL.encode("x\ud800")


def test_control_tokens_are_single_ids_only_as_markup():
    assert SMALL.encode("".join(SMALL_SPECIALS)) == [0, 1, 2, 3, 4]
    assert (SMALL.ids.mask, SMALL.ids.pad, SMALL.ids.ends) == (3, 4, (2, 0))
    plain = SMALL.encode_plain("<|MASK|>")
    assert 3 not in plain
    assert SMALL.decode(plain) == "<|MASK|>"


def test_merges_are_learnt_and_batches_agree():
    assert SMALL.size == 350
    assert len(SMALL.encode(CODE[0])) < len(CODE[0]) / 2
    assert SMALL.encode_batch(CODE) == [SMALL.encode(text) for text in CODE]


def test_training_is_the_same_in_every_process(tmp_path):
    program = (
        "import hashlib, json, sys\nfrom dice.data.tokenizer import train_tokenizer\n"
        "texts = json.load(sys.stdin)\n"
        "print(hashlib.sha256(train_tokenizer(texts, 350).backend.to_str().encode()).hexdigest())"
    )
    digests = {
        subprocess.run([sys.executable, "-c", program], input=json.dumps(CODE), text=True, capture_output=True).stdout
        for _ in range(3)
    }
    assert digests == {hashlib.sha256(SMALL.backend.to_str().encode()).hexdigest() + "\n"}


def test_a_vocabulary_without_room_for_bytes_is_refused():
    with pytest.raises(DiceError, match="are 261"):
        train_tokenizer(CODE, 260)


def test_saved_tokenizers_load_here_and_in_transformers(tmp_path):
    import transformers

    save_tokenizer(SMALL, tmp_path / "small")
    again = load_tokenizer(tmp_path / "small")
    assert again.ids == SMALL.ids
    assert again.encode(CODE[1]) == SMALL.encode(CODE[1])
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "small"), local_files_only=True)
    assert theirs.encode(CODE[1]) == SMALL.encode(CODE[1])
    assert (theirs.mask_token_id, theirs.pad_token_id, theirs.eos_token_id, len(theirs)) == (3, 4, 2, 350)


def write_published(folder, mask_string):
    """A tokenizer.json as in a model's release: the mask at the end, under the given string. Returns its id."""
    backend = tokenizers.Tokenizer.from_str(SMALL.backend.to_str())
    backend.add_special_tokens([tokenizers.AddedToken(mask_string, normalized=False, special=True)])
    folder.mkdir()
    backend.save(str(folder / "tokenizer.json"))
    return backend.token_to_id(mask_string)


def write_ids(folder, ids):
    (folder / "special_ids.json").write_text(ids.model_dump_json())


@pytest.mark.parametrize("mask_string", ["<MASK>", "[noise]"])
def test_the_mask_is_found_by_id_whatever_its_string(tmp_path, mask_string):
    mask = write_published(tmp_path / "model", mask_string)
    assert mask == 350
    write_ids(tmp_path / "model", SpecialIds(mask=mask, pad=0, ends=(2, 0)))
    loaded = load_tokenizer(tmp_path / "model")
    assert loaded.decode([mask]) == mask_string
    assert loaded.size == 351


def test_ids_that_are_no_tokens_are_refused(tmp_path):
    write_published(tmp_path / "model", "<MASK>")
    with pytest.raises(DiceError, match="the mask id 151669 is no token"):
        load_tokenizer(tmp_path / "model", family="sdar")
    with pytest.raises(DiceError, match="the end id 999"):
        CodeTokenizer(SMALL.backend, SpecialIds(mask=3, pad=0, ends=(2, 999)))


def test_a_tokenizer_without_known_ids_or_files_is_refused(tmp_path):
    write_published(tmp_path / "model", "<MASK>")
    with pytest.raises(DiceError, match="which tokens are mask, pad and end"):
        load_tokenizer(tmp_path / "model")
    with pytest.raises(DiceError, match="which tokens are mask, pad and end"):
        load_tokenizer(tmp_path / "model", family="unknown")  # pyright: ignore[reportArgumentType]
    (tmp_path / "model" / "tokenizer.json").write_text("{}")
    with pytest.raises(DiceError, match="not a tokenizer"):
        load_tokenizer(tmp_path / "model", family="sdar")
    with pytest.raises(DiceError, match="no tokenizer in local files"):
        load_tokenizer(tmp_path / "nowhere", family="sdar")


def test_vocab_and_merges_are_read_through_transformers(tmp_path):
    """SDAR's own release has no tokenizer.json but vocab.json and merges.txt."""
    model = json.loads(SMALL.backend.to_str())["model"]
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    pairs = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(pairs) + "\n")
    settings_of = {"tokenizer_class": "Qwen2Tokenizer", "unk_token": "<|endoftext|>", "pad_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings_of))
    write_ids(folder, SpecialIds(mask=3, pad=0, ends=(2, 0)))
    loaded = load_tokenizer(folder)
    assert loaded.encode(CODE[1]) == SMALL.encode(CODE[1])


def test_the_stage_trains_reports_and_writes_a_manifest(tmp_path):
    rows = [
        Pair(id=str(i), pytorch_code=CODE[0], cuda_code=f"x = {i}\n{CODE[0]}" if i else "", source="test")
        for i in range(3)
    ]
    write_jsonl(tmp_path / "pairs.jsonl", rows)
    arguments = ["--pairs", str(tmp_path / "pairs.jsonl"), "--out", str(tmp_path / "tok")]
    assert main(["tokenizer", *arguments, "--vocab-size", "300", "--rows", "2"]) == 0
    loaded = load_tokenizer(tmp_path / "tok")
    assert loaded.size <= 300
    manifest = json.loads(manifest_path(tmp_path / "tok" / "tokenizer.json").read_text())
    assert manifest["extra"]["texts"] == 3
    assert manifest["extra"]["texts_changed_by_a_round_trip"] == 0
    assert main(["tokenizer", *arguments, "--vocab-size", "30"]) == 2
    assert main(["tokenizer", *arguments, "--rows", "0"]) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [("{", "not valid JSON"), ("[]", "expected a JSON object"), ('{"eos_token_id": "x"}', "eos_token_id")],
)
def test_a_checkpoints_settings_that_cannot_be_used_are_one_sentence(tmp_path, text, reason):
    save_tokenizer(train_tokenizer(["ab ab"], 262), tmp_path)
    (tmp_path / "special_ids.json").unlink()
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(DiceError, match=rf"config\.json.*{reason}"):
        load_tokenizer(tmp_path, family="llama")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected a JSON object"),
        ('{"chat_template": [1]}', "no chat template"),
        ('{"chat_template": "{{ bad"}', "cannot be rendered"),
    ],
)
def test_a_chat_template_that_cannot_be_used_is_one_sentence(tmp_path, text, reason):
    (tmp_path / "tokenizer_config.json").write_text(text)
    with pytest.raises(DiceError, match=reason):
        checkpoint_chat(tmp_path, train_tokenizer(["ab ab"], 262))("hello")
