"""`dice generate` with a tiny checkpoint of every family, in its vendor's format, tokenizer and chat template included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from vendor_checkpoints import END, MASK, write_checkpoint

from dice.config import parse_config
from dice.data.chat_template import checkpoint_chat
from dice.data.tokenizer import CodeTokenizer, SpecialIds, load_tokenizer
from dice.errors import DiceError
from dice.evaluation.generate import GenerateConfig, generate
from dice.evaluation.prompts import prompt_sha256
from dice.evaluation.prompts.stage import PromptRow
from dice.jsonl import write_jsonl

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}<end>{% endfor %}"
    "{% if add_generation_prompt %}[answer]{% endif %}"
)
LETTERS = "\n !#$%&'()*+,-./0123456789:;=?@[]_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
DECODING = {
    "llada": {"llada": {"block_size": 8}},
    "dream": {"dream": {"steps": 9}},
    "stable_diffcoder": {"block_diffusion": {"ends": "budget"}},
    "wedlm": {"window": {"window": 4}},
}


def write_tokenizer(folder: Path, template: str | None = TEMPLATE) -> None:
    """One token a character, and the control tokens of tests/vendor_checkpoints.py."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {letter: index for index, letter in enumerate(LETTERS)}
    vocabulary |= {f"unused{index}": index for index in range(len(LETTERS), 104)}
    for text, index in (("<mask>", MASK), ("<end>", END), ("<bos>", 103)):
        del vocabulary[f"unused{index}"]
        vocabulary[text] = index
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="!"))
    backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    backend.decoder = decoders.Fuse()
    backend.add_special_tokens([AddedToken(text, special=True) for text in ("<mask>", "<end>", "<bos>")])
    backend.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": {"content": "<bos>"}, "eos_token": "<end>", "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    ids = SpecialIds(mask=MASK, pad=END, ends=(END,))
    (folder / "special_ids.json").write_text(ids.model_dump_json())


def config_of(folder: Path, model: Path, **changes) -> GenerateConfig:
    texts = ["add two numbers", "a[i] += b[i]", "x"]
    rows = [
        PromptRow(id=f"level1/{i}_p", task="end_to_end", prompt_sha256=prompt_sha256(text), prompt=text)
        for i, text in enumerate(texts)
    ]
    write_jsonl(folder / "prompts.jsonl", rows)
    values = {"model": str(model), "prompts": str(folder / "prompts.jsonl"), "out": str(folder / "g.jsonl")}
    values |= {"max_new_tokens": 16, "device": "cpu", "chat": "checkpoint", "max_batch": 2}
    return parse_config(GenerateConfig, values | changes, "test")


@pytest.mark.parametrize("name", sorted(DECODING))
def test_a_checkpoint_of_every_family_answers(tmp_path, name):
    model = write_checkpoint(tmp_path / "model", name)
    write_tokenizer(model)
    rows = generate(config_of(tmp_path, model, **DECODING[name]))
    assert [row.problem_id for row in rows] == [f"level1/{i}_p" for i in range(3)]
    for row in rows:
        assert row.n_tokens is not None
        assert row.n_forwards is not None
        assert 0 < row.n_tokens <= 16
        assert "<mask>" not in row.text
        assert row.n_forwards >= max(row.order)
    again = generate(config_of(tmp_path, model, max_batch=1, memory_gib=1, **DECODING[name]))
    assert [row.text for row in again] == [row.text for row in rows]
    manifest = json.loads((tmp_path / "g.jsonl.manifest.json").read_text())
    assert manifest["spec"]["chat"] == "checkpoint"
    plain = generate(config_of(tmp_path, model, chat="prompts", **DECODING[name]))
    assert [row.text for row in plain] != [row.text for row in rows]


def test_the_released_answer_of_llada_runs_on_behind_its_end(tmp_path):
    model = write_checkpoint(tmp_path / "model", "llada")
    write_tokenizer(model)
    (model / "special_ids.json").write_text(
        SpecialIds(mask=MASK, pad=END, ends=tuple(range(0, 100, 3))).model_dump_json()
    )
    ours, released = (
        generate(config_of(tmp_path, model, llada={"block_size": 8, "compat": compat}))
        for compat in ("none", "released")
    )
    assert {row.finish_reason for row in ours} == {"stop"}
    assert [row.n_tokens for row in released] == [16, 16, 16]
    assert all(row.n_forwards is not None and row.n_forwards < 16 for row in ours)
    for row in released:
        assert row.finish_reason == "length"
        assert "<" not in row.text, "control tokens are no text"


def test_a_checkpoint_of_another_family_is_refused(tmp_path):
    model = write_checkpoint(tmp_path / "model", "llada")
    write_tokenizer(model)
    with pytest.raises(DiceError, match="it is of the family llada, not dream"):
        generate(config_of(tmp_path, model, family="dream"))


def test_reasoning_is_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(CodeTokenizer, "decode", lambda *_, **__: "<think>\nfirst\n</think>\n\nthen")
    model = write_checkpoint(tmp_path / "model", "llada")
    write_tokenizer(model)
    rows = generate(config_of(tmp_path, model, llada={"block_size": 8}))
    assert {(row.thought, row.text) for row in rows} == {("first", "then")}


def test_the_template_is_rendered_as_transformers_does(tmp_path):
    write_tokenizer(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    chat = checkpoint_chat(tmp_path, tokenizer)
    assert chat(" hello ") == "<bos>[user]hello<end>[answer]"
    assert tokenizer.encode(chat("x"))[0] == 103, "the string of a control token becomes the token"
    with pytest.raises(DiceError, match="holds '<end>', a control token"):
        chat("a <end> b")
    (tmp_path / "chat_template.jinja").write_text("only {{ messages[0].content }}")  # newer files have it apart
    assert checkpoint_chat(tmp_path, tokenizer)("this") == "only this"


def test_a_checkpoint_without_a_template_is_refused(tmp_path):
    write_tokenizer(tmp_path, template=None)
    with pytest.raises(DiceError, match="has no chat template"):
        checkpoint_chat(tmp_path, load_tokenizer(tmp_path))


def test_a_named_template_is_found(tmp_path):
    write_tokenizer(tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    named = [{"name": "tools", "template": "no"}, {"name": "default", "template": "yes"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": named}))
    assert checkpoint_chat(tmp_path, load_tokenizer(tmp_path))("x") == "yes"


def test_the_ends_of_a_causal_family_are_those_of_the_checkpoint(tmp_path):
    write_tokenizer(tmp_path)
    (tmp_path / "special_ids.json").unlink()
    with pytest.raises(DiceError, match="which token ends an answer"):
        load_tokenizer(tmp_path, family="qwen2")
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": 103}))
    assert load_tokenizer(tmp_path, family="llama").ids == SpecialIds(mask=None, pad=103, ends=(103,))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [END, 103]}))
    assert load_tokenizer(tmp_path, family="qwen2").ids == SpecialIds(mask=None, pad=END, ends=(END, 103))


def test_the_files_of_dream_are_read_without_its_code(tmp_path):
    """vocab.json, merges.txt and added_tokens.json; tokenizer_config.json names a class of the vendor's own."""
    from tokenizers import pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = letters + [f"w{index}" for index in range(len(letters), 151643)]
    (tmp_path / "vocab.json").write_text(json.dumps({word: index for index, word in enumerate(words)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    added = {f"<|unused{index}|>": index for index in range(151643, 151668)}
    for text, index in (
        ("<|endoftext|>", 151643),
        ("<|im_end|>", 151645),
        ("<|mask|>", 151666),
        ("<|dlm_pad|>", 151667),
    ):
        del added[f"<|unused{index}|>"]
        added[text] = index
    (tmp_path / "added_tokens.json").write_text(json.dumps(added))
    settings = {
        "tokenizer_class": "DreamTokenizer",
        "auto_map": {"AutoTokenizer": ["tokenization_dream.DreamTokenizer", None]},
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = load_tokenizer(tmp_path, family="dream")
    assert tokenizer.ids == SpecialIds(mask=151666, pad=151643, ends=(151645, 151643, 151667))
    assert tokenizer.encode("a<|im_end|>b") == [letters.index("a"), 151645, letters.index("b")]
