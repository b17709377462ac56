"""`dice generate`: resume after a kill, seeds of samples, refusals (learning to answer: tests/training/test_sft.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_models import make_config, make_model, save_model

from dice.config import parse_config
from dice.data.tokenizer import save_tokenizer, train_tokenizer
from dice.decoding.decoder import Decoder
from dice.errors import DiceError
from dice.evaluation.generate import GenerateConfig, Generation, generate, sample_seed
from dice.evaluation.prompts import prompt_sha256
from dice.evaluation.prompts.stage import PromptRow
from dice.jsonl import read_jsonl, write_jsonl


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("generate")
    tokenizer = train_tokenizer(["import torch\n"] * 3, 300)
    config = make_config(vocab_size=320, num_hidden_layers=1, block_size=4, mask_token_id=tokenizer.ids.mask)
    save_model(make_model(config), folder / "model")
    save_tokenizer(tokenizer, folder / "model")
    prompts = [f"import torch  # {number}" for number in range(5)]
    rows = [
        PromptRow(id=f"level1/{i}_p", task="end_to_end", prompt_sha256=prompt_sha256(text), prompt=text)
        for i, text in enumerate(prompts)
    ]
    write_jsonl(folder / "prompts.jsonl", rows)
    return folder


def config_of(folder: Path, out: Path, **changes) -> GenerateConfig:
    values = {
        "model": str(folder / "model"),
        "prompts": str(folder / "prompts.jsonl"),
        "out": str(out),
        "samples": 2,
        "max_new_tokens": 9,
        "max_batch": 3,
        "device": "cpu",
        "block_diffusion": {"sampling": {"temperature": 1.0}},
    }
    return parse_config(GenerateConfig, values | changes, "test")


def without_times(rows: list[Generation]) -> list[dict]:
    return [row.model_dump(exclude={"seconds"}) for row in rows]


def test_rows_are_complete_and_in_order(folder, tmp_path):
    rows = generate(config_of(folder, tmp_path / "g.jsonl"))
    assert [(row.problem_id, row.sample) for row in rows] == [(f"level1/{i}_p", s) for i in range(5) for s in range(2)]
    assert list(read_jsonl(tmp_path / "g.jsonl", Generation)) == rows
    for row in rows:
        assert row.seed == sample_seed(0, row.problem_id, row.sample)
        assert row.n_tokens == len(row.order) == len(row.ends) <= 9
        assert row.ends[-1] == len(row.text)
        assert row.n_forwards is not None
        assert max(row.order) < row.n_forwards
    assert rows[0].text != rows[1].text
    manifest = json.loads((tmp_path / "g.jsonl.manifest.json").read_text())
    assert manifest["extra"]["engine"] == "plain"
    assert manifest["extra"]["tokens"] == sum(row.n_tokens or 0 for row in rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.jsonl", "g.jsonl.manifest.json"]
    assert without_times(generate(config_of(folder, tmp_path / "h.jsonl", max_batch=1))) == without_times(rows)
    assert without_times(generate(config_of(folder, tmp_path / "h.jsonl", seed=1))) != without_times(rows)


def test_an_interrupted_run_resumes(folder, tmp_path, monkeypatch):
    whole = without_times(generate(config_of(folder, tmp_path / "whole.jsonl")))
    run = Decoder.run

    def interrupted(self, requests):
        for number, completion in enumerate(run(self, requests)):
            if number == 4:
                raise KeyboardInterrupt
            yield completion

    monkeypatch.setattr(Decoder, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        generate(config_of(folder, tmp_path / "g.jsonl"))
    (journal,) = tmp_path.glob(".g.jsonl.*")
    with journal.open("a") as stream:
        stream.write('{"problem_id": "level1/4')  # a line torn by the kill
    assert not (tmp_path / "g.jsonl").exists()
    asked = []

    def counted(self, requests):
        asked.extend(requests)
        yield from run(self, requests)

    monkeypatch.setattr(Decoder, "run", counted)
    assert without_times(generate(config_of(folder, tmp_path / "g.jsonl"))) == whole
    assert len(asked) == 6
    assert not journal.exists()


def test_another_tokenizer_does_not_take_up_the_journal(folder, tmp_path, monkeypatch):
    """Of another folder, or of the same one with other files: its ids are other prompts, and other texts of the answers."""

    def interrupted(self, requests):
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr(Decoder, "run", interrupted)
    own = {"tokenizer": str(tmp_path / "tokenizer")}
    for texts, changes in ((["import torch\n"] * 3, {}), (["return x\n"] * 3, own), (["def f():\n"] * 3, own)):
        save_tokenizer(train_tokenizer(texts, 300), tmp_path / "tokenizer")
        with pytest.raises(KeyboardInterrupt):
            generate(config_of(folder, tmp_path / "g.jsonl", **changes))
    assert len(list(tmp_path.glob(".g.jsonl.*"))) == 3


def test_other_settings_do_not_take_up_the_journal(folder, tmp_path, monkeypatch):
    def interrupted(self, requests):
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr(Decoder, "run", interrupted)
    for seed in (0, 1):
        with pytest.raises(KeyboardInterrupt):
            generate(config_of(folder, tmp_path / "g.jsonl", seed=seed))
    assert len(list(tmp_path.glob(".g.jsonl.*"))) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"block_diffusion": {"block_size": 8, "denoising_steps": 8}},
            "blocks of 4, and block_diffusion.block_size is 8",
        ),
        ({"max_new_tokens": 40000}, "more than the 32768 positions"),
        ({"model": "nowhere"}, "no such file"),
        ({"engine": "fast"}, r"needs a GPU|needs 16-bit"),
    ],
)
def test_refusals(folder, tmp_path, changes, message):
    if "engine" in changes:
        pytest.importorskip("triton")
    with pytest.raises(DiceError, match=message):
        generate(config_of(folder, tmp_path / "g.jsonl", **changes))


def test_duplicate_problem(folder, tmp_path):
    rows = list(read_jsonl(folder / "prompts.jsonl", PromptRow))
    write_jsonl(tmp_path / "p.jsonl", [*rows, rows[0]])
    with pytest.raises(DiceError, match="occurs twice"):
        generate(config_of(folder, tmp_path / "g.jsonl", prompts=str(tmp_path / "p.jsonl")))


def test_an_autoregressive_checkpoint_is_sampled_as_it_says(folder, tmp_path):
    """Its generation_config.json decides, the config's own settings come first, and the manifest says what was used."""
    tokenizer = train_tokenizer(["import torch\n"] * 3, 300)
    model = tmp_path / "causal"
    save_model(make_model(make_config(vocab_size=320, num_hidden_layers=1, model_type="qwen3")), model)
    save_tokenizer(tokenizer, model)

    def answers(name, **changes):
        rows = generate(config_of(folder, tmp_path / name, model=str(model), samples=1, **changes))
        used = json.loads((tmp_path / f"{name}.manifest.json").read_text())["spec"]["autoregressive"]["sampling"]
        return [row.text for row in rows], used

    greedy, used = answers("greedy.jsonl")
    assert used == {"temperature": 0.0, "top_k": 0, "top_p": 1.0}
    (model / "generation_config.json").write_text('{"do_sample": true, "temperature": 2.0, "top_k": 20, "top_p": 0.95}')
    sampled, used = answers("sampled.jsonl")
    assert used == {"temperature": 2.0, "top_k": 20, "top_p": 0.95}
    assert sampled != greedy
    told = {"autoregressive": {"sampling": {"temperature": 0.0}}}
    assert answers("told.jsonl", **told)[0] == greedy


def test_answers_do_not_depend_on_the_memory_that_there_is(folder, tmp_path, capsys):
    """Little of it: fewer slots, the same answers; too little: refused before the weights are read."""
    rows = list(read_jsonl(folder / "prompts.jsonl", PromptRow))
    long = "import torch\n" * 60
    rows[1] = rows[1].model_copy(update={"prompt": long, "prompt_sha256": prompt_sha256(long)})
    write_jsonl(tmp_path / "p.jsonl", rows)
    place = {"prompts": str(tmp_path / "p.jsonl"), "max_batch": 10}
    whole = generate(config_of(folder, tmp_path / "whole.jsonl", **place))
    bound = 3 / 1024  # a few MiB
    few = generate(config_of(folder, tmp_path / "few.jsonl", memory_gib=bound, **place))
    assert without_times(few) == without_times(whole)
    batches = [
        json.loads((tmp_path / f"{name}.jsonl.manifest.json").read_text())["extra"]["batches"]
        for name in ("whole", "few")
    ]
    assert batches[0][0][0] == 10
    assert sum(slots for slots, _ in batches[1]) < 10
    assert "answers of up to" in capsys.readouterr().err
    with pytest.raises(DiceError, match="does not fit the memory of the device: 1 answers of up to"):
        generate(config_of(folder, tmp_path / "none.jsonl", memory_gib=0.0005, **place))
