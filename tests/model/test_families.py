"""Checkpoints of every family: the vendors' formats, and transformers' own Qwen2 and Llama (tokens: tests/decoding)."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import causal_logits, make_config, make_model, save_model, stock
from vendor_checkpoints import CONFIGS, write_checkpoint

from dice.decoding.checkpoint_sampling import checkpoint_sampling
from dice.decoding.decoder import Decoder, Request
from dice.errors import DiceError
from dice.model.attention_masks import DenseAttention, PackedAttention
from dice.model.checkpoint import load_model, read_config
from dice.model.families import FAMILIES, family_name

IDS = torch.arange(1, 14)[None]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", ["qwen2", "llama"])
@torch.no_grad()
def test_the_causal_families_are_transformers_own(tmp_path, name, tied):
    oracle = stock(name, tmp_path, tied=tied)
    model = load_model(tmp_path)
    assert model.config.model_type == name
    torch.testing.assert_close(causal_logits(model, IDS), oracle(IDS).logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize("penalty", [1.0, 1.3, 0.8])
@torch.no_grad()
def test_they_decode_as_transformers_does_with_the_checkpoints_settings(tmp_path, penalty):
    oracle = stock("qwen2", tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps({"repetition_penalty": penalty, "eos_token_id": 96}))
    config = checkpoint_sampling(tmp_path)
    assert config.repetition_penalty == penalty
    decoder = Decoder(load_model(tmp_path), config, mask_id=None, stop_ids=(96,), max_batch=2, max_length=40)
    prompts = [(5,), (7, 7, 8, 9), tuple(range(20)), (1, 2, 3)]
    found = {
        completion.request.prompt: list(completion.ids) for completion in decoder.run(Request(p, 14) for p in prompts)
    }
    for prompt in prompts:
        given = {
            "attention_mask": torch.ones(1, len(prompt)),
            "max_new_tokens": 14,
            "do_sample": False,
            "pad_token_id": 0,
        }
        answer = oracle.generate(torch.tensor([prompt]), **given, repetition_penalty=penalty, eos_token_id=96)
        assert found[prompt] == answer[0, len(prompt) :].tolist(), prompt


def test_the_penalty_changes_tokens(tmp_path):
    stock("qwen2", tmp_path)
    answers = []
    for penalty in (1.0, 1.3):
        (tmp_path / "generation_config.json").write_text(json.dumps({"repetition_penalty": penalty}))
        config = checkpoint_sampling(tmp_path)
        decoder = Decoder(load_model(tmp_path), config, mask_id=None, stop_ids=(), max_batch=1, max_length=40)
        answers.append([completion.ids for completion in decoder.run([Request((7, 7, 8, 9), 14)])])
    assert answers[0] != answers[1]


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_every_tensor_of_a_vendor_counts(tmp_path, name):
    """Two tensors of one shape swapped are another model; so is another eps or theta."""
    folder = write_checkpoint(tmp_path / "m", name)
    before = causal_logits(load_model(folder), IDS)
    swaps = [("gate_proj", "up_proj"), ("input_layernorm", "post_attention_layernorm")]
    if name == "llada":
        swaps = [("ff_proj", "up_proj"), ("attn_norm", "ff_norm"), ("q_proj", "attn_out")]
    tensors = {key: value for file in folder.glob("*.safetensors") for key, value in load_file(file).items()}
    (folder / "model.safetensors.index.json").unlink()
    for file in folder.glob("*.safetensors"):
        file.unlink()
    for one, other in swaps:
        names = {key: key.replace(one, "X").replace(other, one).replace("X", other) for key in tensors}
        save_file({names[key]: value for key, value in tensors.items()}, folder / "model.safetensors")
        assert (causal_logits(load_model(folder), IDS) - before).abs().max() > 1e-2, one
    save_file(tensors, folder / "model.safetensors")
    assert torch.equal(causal_logits(load_model(folder), IDS), before)
    for change in ({"rms_norm_eps": 1e-1}, {"rope_theta": 50.0}):
        (folder / "config.json").write_text(json.dumps(CONFIGS[name] | change))
        assert (causal_logits(load_model(folder), IDS) - before).abs().max() > 1e-3, change
    tensors.pop(next(key for key in tensors if "k_proj" in key))
    (folder / "config.json").write_text(json.dumps(CONFIGS[name]))
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(DiceError, match=r"k_proj\.(weight|bias)' of shape .* is missing"):
        load_model(folder)


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("llada", {"block_type": "sequential"}, "block_type is 'sequential'; of the family llada only 'llama'"),
        ("llada", {"include_qkv_bias": True}, "include_qkv_bias is True"),
        ("dream", {"use_sliding_window": True}, "use_sliding_window is True"),
        ("dream", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "scaled rotary positions"),
        ("dream", {"rope_theta": None}, "rope_theta"),
        ("stable_diffcoder", {"mlp_bias": True}, "mlp_bias is True"),
        ("wedlm", {"qk_norm": None}, "qk_norm"),
        ("wedlm", {"model_type": "gemma2"}, "the families are sdar, qwen3, qwen2, llama, llada, dream"),
    ],
)
def test_what_a_family_has_no_code_for_is_refused(tmp_path, name, changes, sentence):
    folder = write_checkpoint(tmp_path / "m", name)
    values = {key: value for key, value in (CONFIGS[name] | changes).items() if value is not None}
    (folder / "config.json").write_text(json.dumps(values))
    with pytest.raises(DiceError, match=sentence):
        read_config(folder)


def test_what_vendors_files_leave_open(tmp_path):
    """Another type than declared, key-value heads that are not told, a table of frequencies that older writers stored."""
    before = causal_logits(load_model(write_checkpoint(tmp_path / "a", "llada")), IDS)
    folder = write_checkpoint(tmp_path / "b", "llada", torch_dtype="bfloat16", n_kv_heads=None)
    shard = folder / "model-00001-of-00002.safetensors"
    frequencies = {"model.transformer.blocks.0.rotary_emb.inv_freq": torch.ones(3)}
    save_file(load_file(shard) | frequencies, shard)
    assert torch.equal(causal_logits(load_model(folder), IDS), before)


def test_a_scaled_rotary_embedding_of_llama_is_refused(tmp_path):
    """Llama-3.2 and Deepseek-Coder-1.3B: such models are served."""
    stock("llama", tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    values["rope_parameters"] = {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e5}
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(DiceError, match="scaled rotary positions"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("config", "family"),
    [
        ({"model_type": "Dream", "architectures": ["DreamModel"]}, "dream"),
        ({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}, "llama"),
        ({"model_type": "llama", "architectures": ["StableDiffcoderForCausalLM"]}, "stable_diffcoder"),
        ({"model_type": "llada", "architectures": ["LLaDAModelLM"]}, "llada"),
        ({"model_type": "sdar_moe"}, None),
        ({}, None),
    ],
)
def test_the_family_of_a_configuration(config, family):
    assert family_name(config) == family


def test_only_what_is_trained_here_is_written(tmp_path):
    for name, family in FAMILIES.items():
        bias = bool(family.attention_bias)
        model = make_model(make_config(model_type=name, qk_norm=bool(family.qk_norm), attention_bias=bias))
        if name in ("sdar", "qwen3"):
            save_model(model, tmp_path / name)
            assert read_config(tmp_path / name) == model.config
        else:
            with pytest.raises(DiceError, match="is read, not written"):
                save_model(model, tmp_path / name)


@torch.no_grad()
def test_packed_sequences_see_themselves_and_nothing_else():
    model = make_model(make_config(model_type="llada", qk_norm=False))
    sequences = [torch.arange(1, 6), torch.arange(30, 41), torch.tensor([9])]
    lengths = [len(ids) for ids in sequences]
    positions = torch.cat([torch.arange(length) for length in lengths])
    packed = model(torch.cat(sequences)[None], positions[None], PackedAttention(lengths))[0].split(lengths)
    for ids, hidden in zip(sequences, packed, strict=True):
        everything = DenseAttention(torch.ones(len(ids), len(ids), dtype=torch.bool))
        torch.testing.assert_close(hidden, model(ids[None], torch.arange(len(ids)), everything)[0], atol=1e-5, rtol=0)
