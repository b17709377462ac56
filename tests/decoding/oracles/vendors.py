"""The vendors' own modelling files and generation loops, with weights and noise that are given to them.

Nothing of the vendors is part of this repository: `record.py` reads their files from a folder of checkouts (see there).
A loop's random draws are replaced by ours, which depend on seed, position and step, so that tokens can be compared. With
`ours=True` the mask token is forbidden and ties go to the left, as in our default; else the loop is as it is, but that our
block diffusion never chooses the mask token, so that it is forbidden to SDAR and Stable-DiffCoder in both.

A loop gets rows of one configuration and length, and returns their answers. LLaDA's and Dream's take prompts of unequal
lengths padded on the left with a mask; WeDLM's takes sequences, without padding; SDAR's and Stable-DiffCoder's take one row.
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
from vendor_checkpoints import CONFIGS, END, MASK, VOCAB, weights

from dice.decoding.sampling import uniforms


def numbers(seeds, positions, step: int) -> np.ndarray:
    """The given noise: one number in [0, 1) for each seed and position (of one shape when broadcast), in fp64."""
    seeds, positions = np.broadcast_arrays(np.asarray(seeds, np.uint64), np.asarray(positions, np.int64))
    flat = uniforms(seeds.ravel(), positions.ravel(), np.full(positions.size, step, np.int64))
    return flat.reshape(positions.shape).astype(np.float64)


def padded(rows: list[dict]) -> tuple[torch.Tensor, torch.Tensor]:
    """Prompts [rows, longest] with the pad token on their left, and the mask [rows, longest] that tells it."""
    longest = max(len(case["prompt"]) for case in rows)
    pads = [longest - len(case["prompt"]) for case in rows]
    ids = [[END] * pad + case["prompt"] for pad, case in zip(pads, rows, strict=True)]
    return torch.tensor(ids), (torch.arange(longest) >= torch.tensor(pads)[:, None]).long()


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

        config = LlamaConfig(**values, attn_implementation="eager")  # pyright: ignore[reportCallIssue]
        model = module.StableDiffcoderForCausalLM(config)
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


def llada(root: Path, model, rows: list[dict], ours: bool) -> list[list[int]]:
    """LLaDA's generate.py. The copy of its modelling file that is read here attends causally as soon as anything is padded;
    it is told to attend to everything else."""
    sys.path.insert(0, str(root / "LLaDA"))
    module = importlib.import_module("generate")
    how, n = rows[0]["config"], rows[0]["new"]
    ids, mask = padded(rows)
    temperature, step, length = how["sampling"]["temperature"], 0, ids.shape[1] + n
    seeds = np.array([[case["seed"]] for case in rows], np.uint64)
    places = np.maximum(np.arange(length) - (mask == 0).sum(1, keepdim=True).numpy(), 0)  # [rows, length]

    def noisy(logits, temperature):
        nonlocal step
        step += 1
        if temperature == 0:
            return logits
        shares = (logits / temperature).softmax(-1).flatten(0, 1)
        token = drawn(shares, numbers(seeds, places, step).ravel()).view(logits.shape[:2])
        return torch.nn.functional.one_hot(token, VOCAB).double()

    def random(shape, **_):
        return torch.from_numpy(numbers(~seeds, places, step))

    class Model:
        device = "cpu"

        def __call__(self, x, attention_mask):
            everything = torch.zeros(1, 1, length, length) if (attention_mask == 0).any() else None
            out = model(x, attention_mask=attention_mask, attention_bias=everything)
            return types.SimpleNamespace(logits=forbid(out.logits, ours))

    with ties(ours), mock.patch.object(module, "add_gumbel_noise", noisy), mock.patch("torch.rand", random):
        out = module.generate(
            Model(), ids, mask, steps=how["steps"] or n, gen_length=n, block_length=how["block_size"],
            temperature=temperature, remasking=how["score"], mask_id=MASK,
        )  # fmt: skip
    return out[:, ids.shape[1] :].tolist()


def dream(root: Path, model, rows: list[dict], ours: bool) -> list[list[int]]:
    """Dream's generation_utils.py. The copy of its modelling file that is read here cannot run the loop's padded batch: it
    takes the positions for `is_causal`, and adds the mask to the scores as 1 and 0, which hides nothing. It is given both
    so that the padding is hidden, as the loop means it."""
    module = importlib.import_module("models.dream.generation_utils")
    how, n = rows[0]["config"], rows[0]["new"]
    ids, mask = padded(rows)
    pads = (mask == 0).sum(1).numpy()
    sampling = how["sampling"]
    state = types.SimpleNamespace(step=0, rows=np.arange(0), places=np.arange(0))
    all_seeds = np.array([case["seed"] for case in rows], np.uint64)

    def hook(i, x, logits):
        row, column = np.nonzero((x == MASK).numpy())
        state.step, state.rows, state.places = i + 1, row, column - pads[row]
        return forbid(logits, ours)

    class Draw:
        def __init__(self, probs):
            self.probs = probs

        def sample(self):
            return drawn(self.probs, numbers(all_seeds[state.rows], state.places, state.step))

    def random(*shape, **_):
        u = torch.from_numpy(numbers(~all_seeds[state.rows], state.places, state.step)).float()
        share = 1 - times[state.step] / times[state.step - 1] if state.step < len(times) - 1 else 1
        chosen = (u < share).numpy()
        state.rows, state.places = state.rows[chosen], state.places[chosen]
        return u

    def positions_drawn(shares, num_samples):
        picked = []
        for row, seed, pad in zip(shares.double().numpy(), all_seeds, pads, strict=True):
            found = np.flatnonzero(row > 0)
            u = np.maximum(numbers(~seed, found - pad, state.step), 2.0**-25)
            keys = np.log(row[found]) - np.log(-np.log(u))
            picked.append(found[np.argsort(-keys)[:num_samples]])
        return torch.from_numpy(np.stack(picked))

    forward = type(model).forward

    def placed(self, x, attention_mask, positions):
        if isinstance(attention_mask, torch.Tensor):
            attention_mask = (~attention_mask).float() * torch.finfo(torch.float32).min
        return forward(self, x, attention_mask, position_ids=positions)

    steps = how["steps"] or n
    times = torch.linspace(1, how["eps"], steps + 1)
    with (
        ties(ours),
        mock.patch.object(type(model), "forward", placed),
        mock.patch.object(module.dists, "Categorical", Draw),
        mock.patch("torch.rand", random),
        mock.patch("torch.multinomial", positions_drawn),
    ):
        out = model.diffusion_generate(
            ids, attention_mask=mask, max_new_tokens=n, steps=steps, alg=how["algorithm"], eps=how["eps"],
            alg_temp=how["position_temperature"], temperature=sampling["temperature"], top_p=sampling["top_p"],
            top_k=sampling["top_k"] or None, mask_token_id=MASK, generation_logits_hook_func=hook,
        )  # fmt: skip
    return out[:, ids.shape[1] :].tolist()


def stable_diffcoder(root: Path, model, rows: list[dict], ours: bool) -> list[list[int]]:
    """Stable-DiffCoder's generate_block: greedy, with the quotas of fixed steps, the mask token forbidden in both modes. It
    refuses a second row."""
    (case,) = rows
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
    return [out[0, len(prompt) :].tolist()]


def sdar(root: Path, model, rows: list[dict], ours: bool) -> list[list[int]]:
    """The loop of SDAR's generate.py as DICE's script has it. It would write over a prompt where a step's quota is more
    than the masks that are left, and the mask token is forbidden in both modes, since ours never chooses it. Its canvas has
    one row."""
    (case,) = rows
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
    return [out[0, len(prompt) :][: case["new"]].tolist()]


def _on_cpu(root: Path, name: str) -> types.ModuleType:
    """A module of WeDLM's engine, without its package and its GPU."""
    text = (root / "WeDLM" / "wedlm" / "engine" / f"{name}.py").read_text()
    for gpu, cpu in (('"cuda"', '"cpu"'), (", pin_memory=True", ""), (".cuda(non_blocking=True)", "")):
        text = text.replace(gpu, cpu)
    module = types.ModuleType(f"wedlm.engine.{name}")
    sys.modules[module.__name__] = module
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def wedlm(root: Path, model, rows: list[dict], ours: bool) -> list[tuple[list[int], int]]:
    """WeDLM's decoder and sampler around its model, without a cache; also the forwards, the prompt's not counted. Rows begin
    together and end each for itself."""
    package, params = types.ModuleType("wedlm"), types.ModuleType("wedlm.sampling_params")
    sys.modules |= {"wedlm": package, "wedlm.engine": types.ModuleType("wedlm.engine"), params.__name__: params}
    exec((root / "WeDLM" / "wedlm" / "sampling_params.py").read_text(), params.__dict__)
    sequence, sampler, decoder = (_on_cpu(root, name) for name in ("sequence", "sampler", "wedlm_decoder"))
    how = rows[0]["config"]
    sequence.Sequence.block_size = 1
    seqs = [
        sequence.Sequence(
            list(case["prompt"]),
            params.SamplingParams(
                **how["sampling"], max_tokens=case["new"], stop_token_ids=case["ends"],
                wedlm_entropy_threshold=how["threshold"], wedlm_pos_penalty_factor=how["position_penalty"],
            ),
        )
        for case in rows
    ]  # fmt: skip
    for seq in seqs:
        seq.block_table, seq.kv_budget = list(range(1000)), 1000
    window = decoder.WeDLMDecoder(MASK, 1, how["window"], sampler.Sampler())
    window.initialize_states(seqs)
    forwards, step, pruned, now = [0] * len(rows), 0, window._process_pruned_tokens, 0

    def prune(seq, state, count):  # the decoder begins each sequence's turn with it
        nonlocal now
        now = seqs.index(seq)
        return pruned(seq, state, count)

    def token(shares, num_samples):
        state = seqs[now].wedlm_state
        places = [state.current_seq_len + i for i, is_mask in enumerate(state.window_mask_flags) if is_mask]
        return drawn(shares, numbers(rows[now]["seed"], places, step))[:, None]

    with (
        mock.patch("torch.multinomial", token),
        mock.patch.object(window, "_process_pruned_tokens", prune),
        torch.no_grad(),
    ):
        while given := window.prepare_decode_inputs(seqs):
            step += 1
            sizes, logits = given.context.per_seq_wedlm_sizes.tolist(), []
            turns = zip(given.active_indices, given.input_ids.split(sizes), given.positions.split(sizes), strict=True)
            for row, new_ids, new_positions in turns:
                forwards[row] += 1
                seq = seqs[row]
                ids = torch.cat((torch.tensor(seq.token_ids), new_ids))[None]
                positions = torch.cat((torch.arange(len(seq)), new_positions))[None]
                out = model(ids, attention_mask=torch.ones_like(ids), position_ids=positions, use_cache=False)
                logits.append(forbid(out.logits[0, len(seq) :], ours))
            for seq, new in zip(seqs, window.process_decode_outputs(seqs, given, torch.cat(logits)), strict=True):
                for one in new or ():
                    seq.append_token(one)
    answers = [seq.token_ids[len(case["prompt"]) :][: case["new"]] for seq, case in zip(seqs, rows, strict=True)]
    return list(zip(answers, forwards, strict=True))
