"""The vendors' own modelling files and generation loops, with weights and noise that are given to them.

Nothing of the vendors is part of this repository: `record.py` reads their files from a folder of checkouts (see there).
A loop's random draws are replaced by ours, which depend on seed, position and step, so that tokens can be compared. With
`ours=True` the mask token is forbidden and ties go to the left, as in our default; else the loop is as it is, but that our
block diffusion never chooses the mask token, so that it is forbidden to SDAR and Stable-DiffCoder in both.
"""

from __future__ import annotations

import importlib
import sys
import types
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from vendor_checkpoints import CONFIGS, MASK, VOCAB, weights

from dice.decoding.sampling import uniforms


def numbers(seed: int, positions, step: int) -> np.ndarray:
    """The given noise: one number in [0, 1) for each position, in fp64."""
    positions = np.asarray(positions, np.int64)
    seeds = np.full(positions.shape, seed % 2**64, np.uint64)
    return uniforms(seeds, positions, np.full_like(positions, step)).astype(np.float64)


def drawn(shares: torch.Tensor, u: np.ndarray) -> torch.Tensor:
    """The token at which the cumulative sum of each row passes its number."""
    sums = np.cumsum(shares.double().numpy(), -1)
    return torch.tensor(
        [int(np.searchsorted(row, x * row[-1], side="right")) for row, x in zip(sums, u, strict=True)], dtype=torch.long
    )


def left_topk(values: torch.Tensor, k, dim: int = -1):
    """torch.topk with ties to the left."""
    ordered, index = values.sort(stable=True, dim=dim, descending=True)
    return ordered[..., : int(k)], index[..., : int(k)]


@contextmanager
def ties(ours: bool):
    """Within: whose ties torch.topk has."""
    with mock.patch("torch.topk", left_topk) if ours else mock.patch("torch.topk", torch.topk):
        yield


def forbid(logits: torch.Tensor, ours: bool) -> torch.Tensor:
    """Logits without the mask token's."""
    if ours:
        logits = logits.clone()
        logits[..., MASK] = float("-inf")
    return logits


def load(root: Path, name: str):
    """The vendor's model of tests/vendor_checkpoints.py, with its weights."""
    values = {key: value for key, value in CONFIGS[name].items() if key not in ("architectures", "model_type")}
    sys.path.insert(0, str(root / "Stable-DiffCoder"))
    for package, folder in (("models", root / "dLLM-RL" / "models"), ("hf_compat", root / "WeDLM" / "hf_compat")):
        sys.modules[package] = types.ModuleType(package)  # their own __init__ ask for more than the models need
        sys.modules[package].__path__ = [str(folder)]
    if name == "llada":
        module = importlib.import_module("models.llada.modeling_llada")
        model = module.LLaDAModelLM(module.LLaDAConfig(**values, use_cache=False), init_params=False)
    elif name == "dream":
        module = importlib.import_module("models.dream.modeling_dream")
        model = module.DreamModel(module.DreamConfig(**values, attn_implementation="eager"))
    elif name == "stable_diffcoder":
        module = importlib.import_module("modeling_stable_diffcoder")
        from transformers import LlamaConfig

        model = module.StableDiffcoderForCausalLM(LlamaConfig(**values, attn_implementation="eager"))
    elif name == "sdar":
        import transformers  # before the stand-ins: it looks for the packages that are there

        assert transformers.PreTrainedModel
        packages = ("flash_attn", "flash_attn.ops", "flash_attn.ops.triton", "flash_attn.ops.triton.layer_norm")
        sys.modules |= {package: types.ModuleType(package) for package in packages}
        norm: Any = sys.modules[packages[-1]]
        norm.rms_norm_fn = lambda x, weight, bias, eps: torch.nn.functional.rms_norm(x, weight.shape, weight, eps)
        module = importlib.import_module("models.sdar.modeling_sdar")
        model = module.SDARForCausalLM(module.SDARConfig(**values, fuse_cross_entropy=False))
    else:
        module = importlib.import_module("hf_compat.modeling_wedlm")
        model = module.WeDLMForCausalLM(module.WeDLMConfig(**values, attn_implementation="eager"))
    model.load_state_dict(weights(name), strict=True)
    return model.eval()


@torch.no_grad()
def full_logits(name: str, model, ids: list[int]) -> torch.Tensor:
    """Logits [tokens, vocab] of the vendor's model under the family's attention: full, block-causal by 4, or causal."""
    x = torch.tensor([ids])
    if name == "llada":
        return model(x).logits[0]
    if name == "dream":
        return model(x, "full", None).logits[0]
    if name == "sdar":
        block = torch.arange(len(ids)) // 4
        return model(x, attention_mask=(block[None] <= block[:, None])[None, None], use_cache=False).logits[0]
    if name == "stable_diffcoder":
        mask = model._make_block_causal_mask(len(ids), 4, "cpu", dtype=torch.float32)
        return model(x, attention_mask=mask, use_cache=False).logits[0]
    return model(x, attention_mask=torch.ones_like(x), use_cache=False).logits[0]


def llada(root: Path, model, case: dict, ours: bool) -> list[int]:
    """LLaDA's generate.py."""
    sys.path.insert(0, str(root / "LLaDA"))
    module = importlib.import_module("generate")
    how, n, prompt, seed = case["config"], case["new"], case["prompt"], case["seed"]
    temperature, step, every = how["sampling"]["temperature"], 0, np.arange(len(prompt) + n)

    def noisy(logits, temperature):
        nonlocal step
        step += 1
        if temperature == 0:
            return logits
        token = drawn((logits[0] / temperature).softmax(-1), numbers(seed, every, step))
        return torch.nn.functional.one_hot(token, VOCAB)[None].double()

    def random(shape, **_):
        return torch.from_numpy(numbers(~seed, every, step))[None]

    class Model:
        device = "cpu"

        def __call__(self, x, attention_mask=None):
            return types.SimpleNamespace(logits=forbid(model(x, attention_mask=attention_mask).logits, ours))

    with ties(ours), mock.patch.object(module, "add_gumbel_noise", noisy), mock.patch("torch.rand", random):
        out = module.generate(
            Model(), torch.tensor([prompt]), steps=how["steps"] or n, gen_length=n, block_length=how["block_size"],
            temperature=temperature, remasking=how["score"], mask_id=MASK,
        )  # fmt: skip
    return out[0, len(prompt) :].tolist()


def dream(root: Path, model, case: dict, ours: bool) -> list[int]:
    """Dream's generation_utils.py."""
    module = importlib.import_module("models.dream.generation_utils")
    how, n, prompt, seed = case["config"], case["new"], case["prompt"], case["seed"]
    sampling = how["sampling"]
    state = types.SimpleNamespace(step=0, positions=np.arange(0))

    def hook(i, x, logits):
        state.step, state.positions = i + 1, np.flatnonzero((x[0] == MASK).numpy())
        return forbid(logits, ours)

    class Draw:
        def __init__(self, probs):
            self.probs = probs

        def sample(self):
            return drawn(self.probs, numbers(seed, state.positions, state.step))

    def random(*shape, **_):
        u = torch.from_numpy(numbers(~seed, state.positions, state.step)).float()
        share = 1 - times[state.step] / times[state.step - 1] if state.step < len(times) - 1 else 1
        state.positions = state.positions[(u < share).numpy()]
        return u

    def positions_drawn(shares, num_samples):
        found = np.flatnonzero(shares[0].numpy() > 0)
        u = np.maximum(numbers(~seed, found, state.step), 2.0**-25)
        keys = np.log(shares[0, found].double().numpy()) - np.log(-np.log(u))
        return torch.from_numpy(found[np.argsort(-keys)[:num_samples]])[None]

    steps = how["steps"] or n
    times = torch.linspace(1, how["eps"], steps + 1)
    with (
        ties(ours),
        mock.patch.object(module.dists, "Categorical", Draw),
        mock.patch("torch.rand", random),
        mock.patch("torch.multinomial", positions_drawn),
    ):
        out = model.diffusion_generate(
            torch.tensor([prompt]), max_new_tokens=n, steps=steps, alg=how["algorithm"], eps=how["eps"],
            alg_temp=how["position_temperature"], temperature=sampling["temperature"], top_p=sampling["top_p"],
            top_k=sampling["top_k"] or None, mask_token_id=MASK, generation_logits_hook_func=hook,
        )  # fmt: skip
    return out[0, len(prompt) :].tolist()


def stable_diffcoder(root: Path, model, case: dict, ours: bool) -> list[int]:
    """Stable-DiffCoder's generate_block: greedy, with the quotas of fixed steps, the mask token forbidden in both modes."""
    how, prompt, n = case["config"], case["prompt"], case["new"]
    steps = how["denoising_steps"] * (n // how["block_size"])
    forward = type(model).forward

    def masked(self, *args, **kwargs):
        out = forward(self, *args, **kwargs)
        out.logits = forbid(out.logits, True)
        return out

    with ties(ours), mock.patch.object(type(model), "forward", masked):
        out, _ = model.generate_block(
            torch.tensor([prompt]), steps=steps, gen_length=n, block_length=how["block_size"], mask_id=MASK,
            threshold=None, eos_id=case["ends"][0] if case["ends"] else None,
        )  # fmt: skip
    return out[0, len(prompt) :].tolist()


def sdar(root: Path, model, case: dict, ours: bool) -> list[int]:
    """The loop of SDAR's generate.py as DICE's script has it. It would write over a prompt where a step's quota is more
    than the masks that are left, and the mask token is forbidden in both modes, since ours never chooses it."""
    sys.path.insert(0, str(root / "DICE" / "evaluation" / "scripts"))
    module = importlib.import_module("sdar_utils")
    how, prompt, seed = case["config"], case["prompt"], case["seed"]
    state = types.SimpleNamespace(step=-1, start=0)

    class Model:
        device = "cpu"

        def eval(self):
            return self

        def __call__(self, ids, *, position_ids, store_kv, **given):
            out = model(ids, position_ids=position_ids, store_kv=store_kv, **given)
            if not store_kv:
                state.step, state.start = state.step + 1, int(position_ids[0, 0])
            out.logits = forbid(out.logits, True)
            return out

    def token(shares, num_samples):
        return drawn(shares, numbers(seed, state.start + np.arange(len(shares)), state.step))[:, None]

    with ties(ours), mock.patch("torch.multinomial", token):
        out = module.block_diffusion_generate(
            Model(), {"input_ids": torch.tensor([prompt])}, MASK, gen_length=case["new"],
            block_length=how["block_size"], denoising_steps=how["denoising_steps"], **how["sampling"],
            remasking_strategy=f"low_confidence_{how['strategy']}", confidence_threshold=how["threshold"],
            stopping_criteria_idx=case["ends"],
        )  # fmt: skip
    return out[0, len(prompt) :][: case["new"]].tolist()


def _on_cpu(root: Path, name: str) -> types.ModuleType:
    """A module of WeDLM's engine, without its package and its GPU."""
    text = (root / "WeDLM" / "wedlm" / "engine" / f"{name}.py").read_text()
    for gpu, cpu in (('"cuda"', '"cpu"'), (", pin_memory=True", ""), (".cuda(non_blocking=True)", "")):
        text = text.replace(gpu, cpu)
    module = types.ModuleType(f"wedlm.engine.{name}")
    sys.modules[module.__name__] = module
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def wedlm(root: Path, model, case: dict, ours: bool) -> tuple[list[int], int]:
    """WeDLM's decoder and sampler around its model, without a cache; also the forwards, the prompt's not counted."""
    package, params = types.ModuleType("wedlm"), types.ModuleType("wedlm.sampling_params")
    sys.modules |= {"wedlm": package, "wedlm.engine": types.ModuleType("wedlm.engine"), params.__name__: params}
    exec((root / "WeDLM" / "wedlm" / "sampling_params.py").read_text(), params.__dict__)
    sequence, sampler, decoder = (_on_cpu(root, name) for name in ("sequence", "sampler", "wedlm_decoder"))
    how, prompt, seed = case["config"], case["prompt"], case["seed"]
    sequence.Sequence.block_size = 1
    seq = sequence.Sequence(
        list(prompt),
        params.SamplingParams(
            **how["sampling"], max_tokens=case["new"], stop_token_ids=case["ends"],
            wedlm_entropy_threshold=how["threshold"], wedlm_pos_penalty_factor=how["position_penalty"],
        ),
    )  # fmt: skip
    seq.block_table, seq.kv_budget = list(range(1000)), 1000
    window = decoder.WeDLMDecoder(MASK, 1, how["window"], sampler.Sampler())
    window.initialize_states([seq])
    state, forwards = seq.wedlm_state, 0

    def token(shares, num_samples):
        places = [state.current_seq_len + i for i, is_mask in enumerate(state.window_mask_flags) if is_mask]
        return drawn(shares, numbers(seed, places, forwards))[:, None]

    with mock.patch("torch.multinomial", token), torch.no_grad():
        while not state.is_finished:
            given = window.prepare_decode_inputs([seq])
            forwards += 1
            ids = torch.cat((torch.tensor(seq.token_ids), given.input_ids))[None]
            positions = torch.cat((torch.arange(len(seq)), given.positions))[None]
            out = model(ids, attention_mask=torch.ones_like(ids), position_ids=positions, use_cache=False)
            logits = forbid(out.logits[0, len(seq) :], ours)
            (new,) = window.process_decode_outputs([seq], given, logits)
            for one in new or ():
                seq.append_token(one)
    return seq.token_ids[len(prompt) :][: case["new"]], forwards
