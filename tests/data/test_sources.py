import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from waiting import PATIENCE_S

from dice.data.sources import FORMATS, boxed_level, label_of, read_source
from dice.errors import DiceError

PYTORCH = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x.exp()

def get_inputs():
    return [torch.randn(4)]

def get_init_inputs():
    return []
"""
EXAMPLE = PYTORCH.replace("x.exp()", "x + x")
CUDA = "import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return ext.exp(x)\n"
PROMPT = (
    f"You write CUDA kernels.\n\n```python\n{EXAMPLE}```\n\nNow optimise:\n\n```python\n{PYTORCH}```\nName it ModelNew."
)
ANSWER = f"<think>\nexp is element-wise\n</think>\nHere:\n```python\n{CUDA}```\n"


def write_table(path, rows):
    if path.suffix in (".jsonl", ".json"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path
    table = pa.Table.from_pylist(rows)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.name.startswith("ipc"):
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    return path


def concur(**change):
    row = {
        "uuid": 7,
        "problem_name": "Exp",
        "pytorch_code": PYTORCH,
        "generated_code": CUDA,
        "generated_think": "so",
        "speedup_over_eager": 1.4,
    }
    return {**row, **change}


@pytest.mark.parametrize("name", ["data-00000-of-00001.arrow", "ipc.arrow", "rows.parquet", "rows.jsonl"])
def test_concur_in_every_container(tmp_path, name):
    path = write_table(tmp_path / name, [concur(), concur(uuid=8), concur(uuid=9, speedup_over_eager=2.5)])
    pairs, bad = read_source("concur", path)
    assert not bad
    assert [pair.id for pair in pairs] == ["concur/7", "concur/8", "concur/9"]
    assert (pairs[0].pytorch_code, pairs[0].cuda_code, pairs[0].source) == (PYTORCH, CUDA, "concur")
    assert pairs[2].origin == {"row": 3, "problem_name": "Exp", "published_speedup": 2.5}
    assert read_source("concur", tmp_path)[0] == pairs  # the folder with the one file


def test_cudallm_takes_the_last_program_of_the_prompt_and_the_answers_code(tmp_path):
    chat = [{"role": "user", "content": PROMPT}]
    path = write_table(tmp_path / "sft.parquet", [{"prompts": PROMPT, "responses": ANSWER}] * 2)
    pairs, _ = read_source("cudallm", path)
    assert [pair.id for pair in pairs] == ["cudallm/0", "cudallm/1"]
    assert pairs[0].pytorch_code == PYTORCH
    assert pairs[0].cuda_code.strip() == CUDA.strip()
    path = write_table(tmp_path / "chat.parquet", [{"prompts": chat, "responses": ANSWER}])
    assert read_source("cudallm", path)[0][0].pytorch_code == PYTORCH
    messages = [*chat, {"role": "assistant", "content": ANSWER}]
    path = write_table(tmp_path / "m.jsonl", [{"messages": messages, "reward_model": {"ground_truth": EXAMPLE}}])
    assert read_source("cudallm", path)[0][0].pytorch_code == EXAMPLE


def test_structural_rows_carry_up_to_five_answers(tmp_path):
    row = {"id": "structural/a", "pytorch_code": PYTORCH, "answers": [CUDA, ANSWER], "level": 3}
    pairs, _ = read_source("structural", write_table(tmp_path / "s.jsonl", [row]))
    assert pairs[0].cuda_code == CUDA
    assert [answer.strip() for answer in pairs[0].origin["answers"]] == [CUDA.strip()] * 2
    for answers in ([], [CUDA] * 6, CUDA):
        path = write_table(tmp_path / "bad.jsonl", [{**row, "answers": answers}])
        with pytest.raises(DiceError, match=r"bad\.jsonl:1: .*1 to 5 programs"):
            read_source("structural", path)


def test_rl_files_give_their_labels(tmp_path):
    rows = [
        {"idx": n, "level": level, "pytorch_code": PYTORCH, "cuda_code": "", "raw_answer": raw}
        for n, (level, raw) in enumerate(
            [("0", "\\boxed{0}"), ("1", "it is \\boxed{1}"), (None, "\\boxed{2} \\boxed{3}")]
        )
    ]
    (tmp_path / "rl.json").write_text(json.dumps(rows))
    pairs, _ = read_source("end_to_end", tmp_path / "rl.json")
    assert [(pair.id, pair.level, label_of(pair)) for pair in pairs] == [
        ("end_to_end/0", None, 0),
        ("end_to_end/1", 1, 1),
        ("end_to_end/2", 3, 3),
    ]


def test_infilling_items_must_join(tmp_path):
    item = {
        "id": 74,
        "pytorch_code": PYTORCH,
        "cuda_code": "a = 1\nb = 2\n",
        "prefix": "a = 1\n",
        "middle": "b",
        "suffix": " = 2\n",
    }
    (tmp_path / "i.json").write_text(json.dumps([item]))
    assert read_source("infilling", tmp_path / "i.json")[0][0].middle == "b"
    (tmp_path / "i.json").write_text(json.dumps([{**item, "middle": "c"}]))
    with pytest.raises(DiceError, match="prefix \\+ middle \\+ suffix is not cuda_code"):
        read_source("infilling", tmp_path / "i.json")


@pytest.mark.parametrize(
    ("name", "row", "reason"),
    [
        ("concur", concur(pytorch_code="class Model(:"), "field 'pytorch_code' does not parse"),
        ("concur", concur(generated_code="<think>no answer"), "'generated_code': the reasoning section never"),
        ("concur", {"uuid": 1, "pytorch_code": PYTORCH}, "missing field 'generated_code'"),
        ("concur", concur(speedup_over_eager="fast"), "'speedup_over_eager' must be a number"),
        ("concur", concur(generated_code=3), "'generated_code' must be text, found int"),
        ("cudallm", {"prompts": "no code", "responses": ANSWER}, "holds no fenced program with class Model"),
        ("cudallm", {"prompts": PROMPT, "responses": "```cpp\nint a;\n```"}, "field 'responses': no Python among"),
        ("cudallm", {"prompts": PROMPT, "responses": [{"role": "user", "content": "?"}]}, "nor a chat with"),
        ("cudallm", {"responses": ANSWER}, "missing field 'prompts'"),
        ("end_to_end", {"idx": 1, "level": "9", "pytorch_code": PYTORCH}, "unknown level 9"),
        ("end_to_end", {"idx": 1, "level": "hard", "pytorch_code": PYTORCH}, "unknown level 'hard'"),
        ("end_to_end", {"idx": 1, "level": "1", "raw_answer": "\\boxed{2}", "pytorch_code": PYTORCH}, "says 1 and"),
        ("end_to_end", {"idx": 1, "pytorch_code": PYTORCH}, "neither field 'level'"),
        ("end_to_end", {"idx": 1, "level": "1" * 5000, "pytorch_code": PYTORCH}, "unknown level"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named_and_never_half_read(tmp_path, name, row, reason):
    good = {
        "concur": concur(uuid=99),
        "cudallm": {"prompts": PROMPT, "responses": ANSWER},
        "end_to_end": {"idx": 0, "level": "1", "pytorch_code": PYTORCH},
    }[name]
    path = write_table(tmp_path / "rows.jsonl", [good, row])
    with pytest.raises(DiceError) as refused:
        read_source(name, path)
    assert f"{path}:2: " in str(refused.value)
    assert reason in str(refused.value)
    pairs, bad = read_source(name, path, on_bad="skip")
    assert len(pairs) == 1
    assert [(one.line, reason in one.reason) for one in bad] == [(2, True)]


def test_a_row_of_a_table_is_numbered_from_one(tmp_path):
    path = write_table(tmp_path / "rows.parquet", [concur(), concur(uuid=8, pytorch_code="(")])
    _, bad = read_source("concur", path, on_bad="skip")
    assert [one.line for one in bad] == [2]


def test_two_rows_with_one_id(tmp_path):
    path = write_table(tmp_path / "rows.parquet", [concur(), concur()])
    with pytest.raises(DiceError, match=r"duplicate id \(first used at line 1\)"):
        read_source("concur", path)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_file_that_is_not_there_is_one_sentence_that_says_what_to_do(tmp_path, name):
    with pytest.raises(DiceError) as refused:
        read_source(name, tmp_path / "nothing.jsonl")
    message = str(refused.value)
    assert message.startswith(f"{tmp_path / 'nothing.jsonl'}: no such file for {FORMATS[name].title}; ")
    assert FORMATS[name].place in message
    assert message.count("\n") == 0


def test_a_hub_that_cannot_be_reached_is_one_sentence(tmp_path):
    code = "from dice.data.sources import read_source; read_source('concur', 'hub')"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("dice.errors.DiceError: ConCuR: the Hugging Face hub cannot be reached")
    assert "data-00000-of-00001.arrow from https://huggingface.co/datasets/lkongam/ConCuR" in last


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_a_broken_table_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"not a table at all")
    with pytest.raises(DiceError, match="not a readable"):
        read_source("concur", tmp_path / name)


def test_formats_and_folders_that_are_not_clear(tmp_path):
    with pytest.raises(DiceError, match="unknown row format 'nope'"):
        read_source("nope", tmp_path)
    with pytest.raises(DiceError, match="expected one data file in this folder, found 0"):
        read_source("concur", tmp_path)
    with pytest.raises(DiceError, match="not on the hub"):
        read_source("structural", "hub")


@pytest.mark.parametrize(
    ("answer", "level"),
    [
        ("\\boxed{2}", 2),
        ("level \\boxed{ 3 }", 3),
        ("\\boxed{\\text{Level 1}}", 1),
        ("\\boxed{}", None),
        ("2", None),
        ("\\boxed{2} \\boxed{" + "1" * 5000, 2),
    ],
)
def test_boxed_levels(answer, level):
    assert boxed_level(answer) == level
