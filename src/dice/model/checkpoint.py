"""Hugging Face checkpoints: config.json and safetensors, one file or sharded, of the families in `dice.model.families`.

Checkpoints of every family are read; those that are trained here, `sdar` and `qwen3`, are written too.

The safetensors header is read first, before any weight: a file that was cut off, or a tensor that is missing, unknown or
of the wrong shape or type, is refused in one sentence that names the tensor.
Layout of a file: 8 bytes of header length, a JSON header with dtype, shape and data offsets, the data.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import struct
import tempfile
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from dice.errors import DiceError
from dice.jsonl import read_object
from dice.model.families import FAMILIES, Family, family_name
from dice.model.transformer import ModelConfig, Transformer

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
GENERATION_CONFIG = "generation_config.json"
DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
Dtype = Literal["float32", "bfloat16", "float16"]


def torch_dtype(name: Dtype) -> torch.dtype:
    """`bfloat16` -> torch.bfloat16."""
    return getattr(torch, name)


def read_config(folder: str | Path) -> ModelConfig:
    """The geometry in `folder`/config.json. Raises DiceError for another architecture or a feature we lack."""
    return _config_from(_read_json(Path(folder) / CONFIG_FILE), Path(folder) / CONFIG_FILE)


def _config_from(raw: dict[str, Any], where: Path) -> ModelConfig:
    name = family_name(raw)
    if name is None:
        raise DiceError(
            f"{where}: model_type {raw.get('model_type')!r} is not supported; the families are {', '.join(FAMILIES)}. "
            "Serve another model by an OpenAI-compatible server."
        )
    family = FAMILIES[name]
    for field, value in family.must_be.items():
        if raw.get(field) not in (None, value):
            raise DiceError(f"{where}: {field} is {raw[field]!r}; of the family {name} only {value!r} is supported.")
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    if not isinstance(rope, dict):
        raise DiceError(f"{where}: the rotary positions are {rope!r}; an object is needed.")
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        raise DiceError(f"{where}: scaled rotary positions ({rope}) are not supported; serve the model by a server.")
    known = raw | {ours: raw[theirs] for theirs, ours in family.config_names.items() if raw.get(theirs) is not None}
    values = {f.name: known[f.name] for f in dataclasses.fields(ModelConfig) if f.name in known}
    values["model_type"] = name
    for switch in ("qk_norm", "attention_bias"):
        decided = getattr(family, switch)
        if decided is None and switch not in known:
            raise DiceError(f"{where}: the field '{switch}' is missing; models of the family {name} differ in it.")
        values[switch] = bool(known[switch]) if decided is None else decided
    if "rope_theta" in rope:
        values["rope_theta"] = rope["rope_theta"]
    if isinstance(values.get("eos_token_id"), list):
        values["eos_token_id"] = tuple(values["eos_token_id"])
    for field in dataclasses.fields(ModelConfig):
        value, kinds = values.get(field.name), {"int": (int,), "float": (int, float)}.get(str(field.type))
        if value is not None and kinds is not None and type(value) not in kinds:
            raise DiceError(f"{where}: {field.name} is {value!r}; it must be of type {field.type}.")
    try:
        if values.get("head_dim") is None:
            values["head_dim"] = values["hidden_size"] // values["num_attention_heads"]
        if values.get("num_key_value_heads") is None:
            values["num_key_value_heads"] = values["num_attention_heads"]
        for needed in ("rope_theta", "rms_norm_eps"):  # what transformers takes without them depends on the family
            if needed not in values:
                raise KeyError(needed)
        return ModelConfig(**values)
    except KeyError as error:
        raise DiceError(f"{where}: the field {error} is missing.") from error
    except (TypeError, ZeroDivisionError) as error:
        raise DiceError(f"{where}: {error}.") from error


def _our_name(name: str, family: Family) -> str:
    """The state-dict name of a stored tensor; one that the family's table lacks keeps its name."""
    number = re.search(r"\.(\d+)\.", name)
    if number is None:
        return family.weight_names.get(name, name)
    ours = family.weight_names.get(name.replace(number[0], ".N.", 1))
    return name if ours is None else ours.replace(".N.", number[0])


def load_model(
    folder: str | Path,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
) -> Transformer:
    """The model in `folder`, in `dtype` (None: as stored).

    Raises DiceError naming the first tensor that is cut off, missing, unknown, of the wrong shape, or of a type that
    is not floating or not the one that config.json declares.
    """
    from safetensors import safe_open

    folder = Path(folder)
    raw = _read_json(folder / CONFIG_FILE)
    config = _config_from(raw, folder / CONFIG_FILE)
    declared = raw.get("dtype", raw.get("torch_dtype"))
    with torch.device("meta"):
        model = Transformer(config)
    expected = {name: tuple(parameter.shape) for name, parameter in model.state_dict().items()}
    if config.tie_word_embeddings:
        expected.pop("lm_head.weight")
    files = _weight_files(folder)
    stored = {file: _header(folder / file, names) for file, names in files.items()}
    family = FAMILIES[config.model_type]
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for file, header in stored.items():
        for theirs, entry in header.items():
            name = _our_name(theirs, family)
            if name.endswith("rotary_emb.inv_freq"):  # older writers stored what rope_theta says
                continue
            if name in found:
                raise DiceError(f"{folder / file}: tensor '{theirs}' is also in {found[name][0]}.")
            found[name] = (file, entry)
    if config.tie_word_embeddings:
        found.pop("lm_head.weight", None)  # some writers repeat the tied head
    for name, shape in expected.items():
        if name not in found:
            raise DiceError(f"{folder}: tensor '{name}' of shape {list(shape)} is missing from the checkpoint.")
        file, entry = found[name]
        if tuple(entry["shape"]) != shape:
            raise DiceError(
                f"{folder / file}: tensor '{name}' has shape {entry['shape']}; {CONFIG_FILE} asks for {list(shape)}."
            )
        if entry["dtype"] not in DTYPES:
            raise DiceError(
                f"{folder / file}: tensor '{name}' has type {entry['dtype']}; expected {', '.join(DTYPES)}."
            )
        if declared and family.keeps_declared_dtype and str(DTYPES[entry["dtype"]]) != f"torch.{declared}":
            raise DiceError(
                f"{folder / file}: tensor '{name}' has type {entry['dtype']}, but {CONFIG_FILE} declares {declared}; "
                "correct the one that is wrong."
            )
    for name in found:
        if name not in expected:
            raise DiceError(f"{folder / found[name][0]}: tensor '{name}' is not part of a {config.model_type} model.")
    first = DTYPES[next(iter(found.values()))[1]["dtype"]]
    # `to_empty`, whose `empty_like` would import sympy: half a second of every process that loads a model.
    model = model._apply(lambda t: torch.empty(t.shape, dtype=t.dtype, device=device)).to(dtype or first)
    if config.tie_word_embeddings:
        model.lm_head.weight = model.model.embed_tokens.weight
    parameters = dict(model.named_parameters())
    for file in stored:
        with safe_open(folder / file, framework="pt", device=str(device)) as weights, torch.no_grad():
            for theirs in stored[file]:
                name = _our_name(theirs, family)
                if name in expected:
                    parameters[name].copy_(weights.get_tensor(theirs))
    return model


def stored_dtype(folder: str | Path) -> torch.dtype:
    """Type of the weights in `folder`, read from a header. Raises DiceError as `load_model` does."""
    folder = Path(folder)
    file, names = next(iter(_weight_files(folder).items()))
    entries = _header(folder / file, names).values()
    found = next((DTYPES[entry["dtype"]] for entry in entries if entry["dtype"] in DTYPES), None)
    if found is None:
        raise DiceError(f"{folder / file}: no tensor of a type among {', '.join(DTYPES)}.")
    return found


def _weight_files(folder: Path) -> dict[str, list[str]]:
    """File name -> the tensors that the index promises in it; none are promised where there is no index."""
    if (folder / INDEX_FILE).is_file():
        index = _read_json(folder / INDEX_FILE).get("weight_map", {})
        files: dict[str, list[str]] = {}
        for name, file in index.items():
            files.setdefault(file, []).append(name)
        for file, names in files.items():
            if not (folder / file).is_file():
                raise DiceError(f"{folder / file}: this shard, which holds '{names[0]}', is missing.")
        if files:
            return files
        raise DiceError(f"{folder / INDEX_FILE}: 'weight_map' names no tensors.")
    if not (folder / WEIGHTS_FILE).is_file():
        raise DiceError(f"{folder}: neither {WEIGHTS_FILE} nor {INDEX_FILE} is there.")
    return {WEIGHTS_FILE: []}


def _header(path: Path, promised: list[str]) -> dict[str, dict[str, Any]]:
    size = path.stat().st_size
    with path.open("rb") as stream:
        start = stream.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else None
        if length is None or length > size - 8:
            raise DiceError(f"{path}: the file ends inside its header, so no tensor can be read; fetch it again.")
        try:
            header = json.loads(stream.read(length))
        except ValueError as error:
            raise DiceError(f"{path}: not a safetensors file ({error}).") from error
    header.pop("__metadata__", None)
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"][1]):
        missing = 8 + length + entry["data_offsets"][1] - size
        if missing > 0:
            raise DiceError(f"{path}: the file is {missing} bytes short inside tensor '{name}'; fetch it again.")
    for name in promised:
        if name not in header:
            raise DiceError(f"{path}: tensor '{name}' is missing, though the index places it here.")
    return header


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise DiceError(f"{path}: no such file; expected a Hugging Face checkpoint folder.")
    return read_object(path)


def save_state(
    state: dict[str, Tensor],
    config: ModelConfig,
    folder: str | Path,
    *,
    dtype: torch.dtype | None = None,
    max_shard_bytes: int = 5_000_000_000,
) -> None:
    """Write config.json and safetensors to `folder`, which appears complete or not at all.

    `state`: tensors by name, without the head where it is tied. Files of an older checkpoint there that this one does not
    replace (a tokenizer) are kept.
    """
    from safetensors.torch import save_file

    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    stored = dtype or next(iter(state.values())).dtype
    shards: list[list[str]] = [[]]
    room = max_shard_bytes
    for name, tensor in state.items():
        size = tensor.numel() * stored.itemsize
        if size > room and shards[-1]:
            shards.append([])
            room = max_shard_bytes
        shards[-1].append(name)
        room -= size
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
        new = Path(scratch) / "new"
        new.mkdir()
        weight_map = {}
        for number, names in enumerate(shards, 1):
            file = WEIGHTS_FILE if len(shards) == 1 else f"model-{number:05d}-of-{len(shards):05d}.safetensors"
            # clone: fused weights are views of one storage, which safetensors refuses to write
            tensors = {name: state[name].detach().to("cpu", stored).clone().contiguous() for name in names}
            save_file(tensors, new / file, metadata={"format": "pt"})
            weight_map |= dict.fromkeys(names, file)
        if len(shards) > 1:
            total = sum(tensor.numel() * stored.itemsize for tensor in state.values())
            index = {"metadata": {"total_size": total}, "weight_map": weight_map}
            (new / INDEX_FILE).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        text = json.dumps(config_to_json(config, stored), indent=2, sort_keys=True) + "\n"
        (new / CONFIG_FILE).write_text(text, encoding="utf-8")
        if folder.exists():
            for kept in folder.iterdir():
                if not (new / kept.name).exists() and not kept.name.startswith(("model.safetensors", "model-")):
                    copy = shutil.copytree if kept.is_dir() else shutil.copy2
                    copy(kept, new / kept.name)
            folder.rename(Path(scratch) / "old")
        new.rename(folder)


def config_to_json(config: ModelConfig, dtype: torch.dtype) -> dict[str, Any]:
    """config.json as both older and newer transformers read it. Raises DiceError for a family that is not trained here."""
    architecture = {"sdar": "SDARForCausalLM", "qwen3": "Qwen3ForCausalLM"}.get(config.model_type)
    if architecture is None:
        raise DiceError(f"a checkpoint of the family {config.model_type} is read, not written.")
    values = {name: value for name, value in dataclasses.asdict(config).items() if value is not None}
    del values["qk_norm"]  # the family says it
    return values | {
        "architectures": [architecture],
        "attention_bias": False,
        "hidden_act": "silu",
        "torch_dtype": str(dtype).removeprefix("torch."),
        "use_sliding_window": False,
    }


def check_block_size(model: str, geometry: ModelConfig, block_size: int, setting: str) -> None:
    """Raises DiceError where the checkpoint `model` was trained with blocks of another size; `setting`: name of ours."""
    if geometry.block_size not in (None, block_size):
        raise DiceError(
            f"{model}: the model was trained with blocks of {geometry.block_size}, and {setting} is {block_size}; make "
            "them equal."
        )
