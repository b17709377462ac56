"""Checkpoints: what transformers writes loads here and the reverse; damage is named."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import causal_logits, make_config, make_model, oracle_of, save_model

from dice.errors import DiceError
from dice.model.checkpoint import load_model, read_config


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("shard", ["5GB", "40KB"])
@torch.no_grad()
def test_loads_what_transformers_saves(tmp_path, tied, shard):
    model = make_model(make_config(tie_word_embeddings=tied, model_type="qwen3"))
    oracle = oracle_of(model)
    oracle.save_pretrained(tmp_path, max_shard_size=shard)
    assert (len(list(tmp_path.glob("*.safetensors"))) > 1) == (shard == "40KB")
    ids = torch.arange(11)[None]
    torch.testing.assert_close(causal_logits(load_model(tmp_path), ids), oracle(ids).logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("shard_bytes", [10**9, 40_000])
@torch.no_grad()
def test_transformers_loads_what_we_save(tmp_path, tied, shard_bytes):
    transformers = pytest.importorskip("transformers")
    model = make_model(make_config(tie_word_embeddings=tied, model_type="qwen3"))
    save_model(model, tmp_path / "m", max_shard_bytes=shard_bytes)
    oracle = transformers.Qwen3ForCausalLM.from_pretrained(tmp_path / "m").eval()
    ids = torch.arange(11)[None]
    torch.testing.assert_close(causal_logits(model, ids), oracle(ids).logits, atol=1e-4, rtol=0)
    again = load_model(tmp_path / "m")
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


def test_sdar_config_round_trip_and_kept_files(tmp_path):
    config = make_config(block_size=4, mask_token_id=9, eos_token_id=(3, 4))
    folder = tmp_path / "m"
    save_model(make_model(config), folder, dtype=torch.bfloat16, max_shard_bytes=40_000)
    (folder / "tokenizer.json").write_text("{}")
    assert read_config(folder) == config
    save_model(make_model(config, seed=1), folder, dtype=torch.bfloat16)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]
    assert load_model(folder).lm_head.weight.dtype == torch.bfloat16
    assert load_model(folder, dtype=torch.float32).lm_head.weight.dtype == torch.float32
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def _damage(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors = {key: value.clone() for key, value in tensors.items()}
    change(tensors)
    save_file(tensors, path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("model.norm.weight"), r"'model.norm.weight' of shape \[48\] is missing"),
        (lambda t: t.update({"model.norm.weight": torch.ones(47)}), r"'model.norm.weight' has shape \[47\].*\[48\]"),
        (lambda t: t.update({"lm_head.weight": t["lm_head.weight"].to(torch.int8)}), r"'lm_head.weight' has type I8"),
        (lambda t: t.update({"lm_head.weight": t["lm_head.weight"].half()}), r"'lm_head.weight' has type F16, but"),
        (lambda t: t.update({"score.weight": torch.ones(2)}), r"'score.weight' is not part of a sdar model"),
    ],
)
def test_damaged_tensor_is_named(tmp_path, change, message):
    save_model(make_model(make_config()), tmp_path / "m")
    _damage(tmp_path / "m", change)
    with pytest.raises(DiceError, match=message):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("keep", [4, 200, 60_000])
def test_truncated_file_is_named(tmp_path, keep):
    save_model(make_model(make_config()), tmp_path / "m")
    path = tmp_path / "m" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DiceError, match="header" if keep < 1000 else r"bytes short inside tensor '.+'"):
        load_model(tmp_path / "m")


def test_missing_shard_and_wrong_index(tmp_path):
    save_model(make_model(make_config()), tmp_path / "m", max_shard_bytes=40_000)
    index = tmp_path / "m" / "model.safetensors.index.json"
    values = json.loads(index.read_text())
    files = sorted(set(values["weight_map"].values()))
    values["weight_map"]["lm_head.weight"] = (
        files[-1] if values["weight_map"]["lm_head.weight"] != files[-1] else files[0]
    )
    index.write_text(json.dumps(values))
    with pytest.raises(DiceError, match=r"'lm_head.weight' is missing, though the index"):
        load_model(tmp_path / "m")
    (tmp_path / "m" / files[0]).unlink()
    with pytest.raises(DiceError, match=r"this shard.*is missing"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "phi3"}, "model_type 'phi3' is not supported"),
        ({"rope_scaling": {"type": "yarn", "factor": 4}}, "scaled rotary"),
        ({"attention_bias": True}, "attention_bias"),
        ({"num_key_value_heads": 3}, "not a multiple"),
        ({"num_attention_heads": 0, "head_dim": None}, "modulo by zero|division by zero"),
        ({"num_attention_heads": "2"}, "num_attention_heads is '2'; it must be of type int"),
        ({"rms_norm_eps": "x"}, "rms_norm_eps is 'x'; it must be of type float"),
        ({"head_dim": -4}, "head_dim is -4; it must be positive"),
        ({"rope_scaling": "linear"}, "the rotary positions are 'linear'"),
    ],
)
def test_unsupported_config(tmp_path, change, message):
    save_model(make_model(make_config()), tmp_path / "m")
    path = tmp_path / "m" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DiceError, match=message):
        load_model(tmp_path / "m")
    path.unlink()
    with pytest.raises(DiceError, match="no such file"):
        read_config(tmp_path / "m")
