"""Prompts: information and order, chat markup, and KernelBench's own text from a checkout."""

import hashlib
import json

import pytest

from dice.cli import main
from dice.data.infilling import split_candidate
from dice.data.middle import extract_middle
from dice.data.pair import Pair
from dice.errors import DiceError
from dice.evaluation import prompts
from dice.evaluation.prompts import PromptConfig, Task, example, make_answer, make_prompts, prompt_sha256, render_prompt
from dice.evaluation.prompts.chat import EMPTY_THINK, FORMATS, chat_answer, chat_prompt
from dice.evaluation.prompts.kernelbench import kernelbench_prompts
from dice.evaluation.prompts.stage import PromptRow
from dice.jsonl import read_jsonl, write_jsonl
from dice.kernels.records.extract import extract_code
from dice.manifest import manifest_path

CODE = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x {{ 1 }} {% x %}\n"
PREFIX, SUFFIX = "import load_inline\n", "\n\next = load_inline('e', '', cuda_src)\nclass ModelNew: pass\n"


def in_order(text, *parts):
    position = 0
    for part in parts:
        assert part in text[position:], f"{part!r} is missing, or before what should precede it"
        position = text.index(part, position) + len(part)


def test_end_to_end_gives_the_papers_information_in_its_order():
    text = render_prompt(Task(CODE))
    in_order(
        text,
        "custom CUDA kernels",
        "fuse neighbouring operators",
        "online softmax",
        example().reference,
        example().solution,
        "you are given",
        CODE.strip(),
        "Model with custom CUDA operators",
        "ModelNew",
        "code block",
        "not pseudocode",
        "no other text",
        "no code that tests it",
    )


@pytest.mark.parametrize(("answer", "shown"), [("middle", "middle"), ("file", "solution")])
def test_infilling_gives_the_papers_information_in_its_order(answer, shown):
    text = render_prompt(Task(CODE, PREFIX, SUFFIX), answer=answer)
    in_order(
        text,
        "custom CUDA kernels",
        "prefix",
        "core",
        "suffix",
        "objective",
        example().reference,
        example().prefix,
        example().suffix,
        getattr(example(), shown),
        CODE.strip(),
        PREFIX.strip(),
        SUFFIX.strip(),
        "not pseudocode",
    )
    assert ("to cuda_src, which the suffix uses" in text) == (answer == "middle")


def test_infilling_inside_a_call_asks_for_a_string():
    text = render_prompt(Task(CODE, "import load_inline\next = load_inline('e', '', ", ")\n"))
    assert "the Python string that stands between prefix and suffix" in text


def test_compact_prompts_hold_the_task_and_little_else():
    code = CODE.replace("{{ 1 }} {% x %}", "+ 1")
    for task in (Task(code), Task(code, PREFIX, SUFFIX)):
        text = render_prompt(task, style="compact")
        in_order(text, "return x + 1", "ModelNew", (task.prefix or "").strip(), (task.suffix or "").strip())
        given = sum(len(part or "") for part in (task.pytorch_code, task.prefix, task.suffix))
        assert len(text) - given < 100
        assert example().solution not in text
    with pytest.raises(DiceError, match="compact form"):
        render_prompt(Task(CODE), style="compact")


def test_many_prompts_are_written_by_several_processes_in_order(monkeypatch):
    program = "class Model(nn.Module):\n    def forward(self, x):\n        return x * {}\n"
    tasks = [Task(program.format(number), *(() if number % 3 else (PREFIX, SUFFIX))) for number in range(450)]
    config = PromptConfig(style="compact")
    alone = make_prompts(tasks, config)
    monkeypatch.setattr(prompts, "EACH", 100)
    monkeypatch.setattr(prompts, "cores", lambda: 3)
    started = []
    pool = prompts.ProcessPoolExecutor
    monkeypatch.setattr(prompts, "ProcessPoolExecutor", lambda jobs, *how: started.append(jobs) or pool(jobs, *how))
    assert make_prompts(tasks, config) == alone
    assert started == [3]
    with pytest.raises(DiceError, match="needs both prefix and suffix"):
        make_prompts([*tasks, Task(CODE, PREFIX)], config)


def test_code_is_text_and_never_template():
    assert "return x {{ 1 }} {% x %}" in render_prompt(Task(CODE))


@pytest.mark.parametrize(("prefix", "suffix"), [("a", None), (None, "b"), ("x = (", ")("), ("import a\n", "\nb = 1\n")])
def test_scaffolds_that_are_none_are_refused(prefix, suffix):
    with pytest.raises(DiceError, match=r"scaffold|both prefix and suffix"):
        render_prompt(Task(CODE, prefix, suffix))


def test_the_example_is_a_split_program_that_defines_what_it_must():
    shown = example()
    assert shown.middle.startswith('source = """')
    assert split_candidate(shown.solution).middle == shown.middle
    for code, name in ((shown.reference, "Model"), (shown.solution, "ModelNew")):
        assert f"class {name}(nn.Module)" in code
        compile(code, name, "exec")


@pytest.mark.gpu
def test_the_example_is_correct_on_a_gpu():
    import torch

    reference, candidate = {}, {}
    exec(compile(example().reference, "reference", "exec"), reference)
    exec(compile(example().solution, "candidate", "exec"), candidate)
    inputs = [value.cuda() for value in reference["get_inputs"]()]
    torch.testing.assert_close(candidate["ModelNew"]()(*inputs), reference["Model"]()(*inputs))


def test_answers_come_back_from_what_extracts_them():
    config = PromptConfig()
    shown = example()
    answer = make_answer(shown.solution, config)
    assert extract_code(answer.removesuffix("<|im_end|>\n")).code == shown.solution + "\n"
    middle = make_answer(shown.middle, config)
    split = split_candidate(shown.solution)
    found = extract_middle(split.prefix, split.suffix, middle)
    assert split.prefix + found.middle + split.suffix == shown.solution
    compact = make_answer(shown.solution, PromptConfig(style="compact", chat="plain"))
    assert compact == shown.solution + "<|endoftext|>"


# -- chat markup --


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("sdar", "<|im_start|>user\n hi\n<|im_end|>\n<|im_start|>assistant\n"),
        ("qwen3", "<|im_start|>user\n hi\n<|im_end|>\n<|im_start|>assistant\n"),
        ("sdar_released_rl", "<|im_start|>user\n hi\n <|im_end|>\n<|im_start|>assistant\n\n"),
        (
            "dream",
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
            "<|im_start|>user\n hi\n<|im_end|>\n<|im_start|>assistant\n",
        ),
        (
            "diffucoder",
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
            "<|im_start|>user\nhi\n<|im_end|>\n<|im_start|>assistant\n",
        ),
        (
            "llada",
            "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
        ),
        (
            "llama",
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
        ),
        ("gemma", "<bos><start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\n"),
        ("plain", " hi\n"),
    ],
)
def test_chat_markup_of_each_family(family, expected):
    assert chat_prompt(" hi\n", family) == expected
    assert chat_answer("yes", family).startswith("yes")
    for token in FORMATS[family].control:
        with pytest.raises(DiceError, match="control token"):
            chat_prompt(f"code with {token}", family)


def test_the_empty_reasoning_section_stands_where_it_is_told():
    assert chat_prompt("x", "sdar", "in_prompt").endswith("assistant\n" + EMPTY_THINK)
    assert chat_answer("y", "sdar", "in_prompt") == "y<|im_end|>\n"
    assert chat_prompt("x", "sdar", "in_answer").endswith("assistant\n")
    assert chat_answer("y", "sdar", "in_answer") == EMPTY_THINK + "y<|im_end|>\n"
    with pytest.raises(DiceError, match="no reasoning section"):
        chat_prompt("x", "llama", "in_prompt")
    with pytest.raises(DiceError, match="the families are sdar"):
        chat_prompt("x", "gpt")  # pyright: ignore[reportArgumentType]


def test_our_markup_is_what_a_tokenizers_template_gives(tmp_path):
    """Qwen3's template, cut to what it does for one user turn, is the independent reference."""
    transformers = pytest.importorskip("transformers")
    from dice.data.tokenizer import save_tokenizer, train_tokenizer

    save_tokenizer(train_tokenizer(["x"], 261), tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    settings["chat_template"] = (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    turns = [{"role": "user", "content": " hi\n"}]
    assert theirs.apply_chat_template(turns, tokenize=False, add_generation_prompt=True) == chat_prompt(" hi\n", "sdar")


# -- KernelBench's constructor --

OLD = """
import os
from .utils import read_file
TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
def prompt_generate_custom_cuda_from_prompt_template(code):
    return "old é\\n" + read_file(os.path.join(TOP, "src/prompts/example.txt")) + code
"""
NEW = """
import tomli
from {package}.utils import read_file
def get_prompt_for_backend(ref_arch_src, backend="triton", option="few_shot", precision=None):
    return "|".join(["new é", backend, option, precision, tomli.loads("a = 'b'")["a"], ref_arch_src])
"""
UTILS = """
import os
import a_client_that_nobody_has
from a_client_that_nobody_has.models import Client as TheirClient
import torch
torch.rand = lambda *shape: None
client = TheirClient(key=os.environ.get("KEY"))
def read_file(path):
    with open(path, encoding="utf-8") as file:
        return file.read()
"""


def write_checkout(root, package_folder, module, text):
    package = root / package_folder
    (package / "prompts").mkdir(parents=True)
    (package / "__init__.py").write_text("print('import noise')\n")
    (package / "utils.py").write_text(UTILS)
    (package / "prompts" / "example.txt").write_text("example\n", encoding="utf-8")
    (package / f"{module}.py").write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("folder", "module", "text", "expected"),
    [
        ("src", "prompt_constructor", OLD, "old é\nexample\n" + CODE),
        ("evaluation/src", "prompt_constructor", OLD, "old é\nexample\n" + CODE),
        ("src", "prompt_constructor_toml", NEW.format(package="src"), "new é|cuda|one_shot|fp32|b|" + CODE),
        (
            "src/kernelbench",
            "prompt_constructor_toml",
            NEW.format(package="kernelbench"),
            "new é|cuda|one_shot|fp32|b|" + CODE,
        ),
    ],
)
def test_kernelbenchs_constructor_is_used_byte_for_byte(tmp_path, folder, module, text, expected):
    checkout = write_checkout(tmp_path / "kb", folder, module, text)
    assert kernelbench_prompts(checkout, [CODE, "x"]) == [expected, expected.replace(CODE, "x")]


def test_a_checkout_without_or_with_a_broken_constructor_is_one_sentence(tmp_path):
    with pytest.raises(DiceError, match="no prompt constructor"):
        kernelbench_prompts(tmp_path, [CODE])
    broken = write_checkout(tmp_path / "kb", "src", "prompt_constructor", "raise ValueError('no text')")
    with pytest.raises(DiceError, match=r"failed \(ValueError: no text\)"):
        kernelbench_prompts(broken, [CODE])
    hanging = write_checkout(tmp_path / "slow", "src", "prompt_constructor", "import time; time.sleep(60)")
    with pytest.raises(DiceError, match="more than 1 s"):
        kernelbench_prompts(hanging, [CODE], timeout_s=1)


def test_styles_of_a_config(tmp_path):
    checkout = write_checkout(tmp_path / "kb", "src", "prompt_constructor", OLD)
    config = PromptConfig(style="kernelbench", kernelbench_checkout=str(checkout))
    prompts = make_prompts([Task(CODE)], config)
    assert prompts == [chat_prompt("old é\nexample\n" + CODE, "sdar")]
    infilling = Task(CODE, PREFIX, SUFFIX)
    mixed = make_prompts([infilling, Task("x"), infilling, Task(CODE)], config)
    assert [mixed[1], mixed[3]] == [prompts[0].replace(CODE, "x"), prompts[0]]
    assert mixed[0] == mixed[2] == make_prompts([infilling], PromptConfig(style="one_shot"))[0]
    with pytest.raises(DiceError, match="needs KernelBench's folder"):
        make_prompts([Task(CODE)], PromptConfig(style="kernelbench"))


def test_another_version_of_kernelbenchs_text_is_refused(tmp_path):
    """The sha256 is of the prompt for an empty program: it does not depend on the problems."""
    checkout = write_checkout(tmp_path / "kb", "src", "prompt_constructor", OLD)
    wanted = hashlib.sha256("old é\nexample\n".encode()).hexdigest()
    config = PromptConfig(style="kernelbench", kernelbench_checkout=str(checkout), kernelbench_sha256=wanted)
    assert make_prompts([Task(CODE)], config) == [chat_prompt("old é\nexample\n" + CODE, "sdar")]
    (checkout / "src" / "prompts" / "example.txt").write_text("another example\n")
    with pytest.raises(DiceError, match="its prompt is not the one that was asked for"):
        make_prompts([Task(CODE)], config)


def test_the_hash_is_of_the_prompts_bytes():
    prompt = make_prompts([Task(CODE)], PromptConfig())[0]
    assert prompt_sha256(prompt) == hashlib.sha256(prompt.encode("utf-8")).hexdigest()
    assert prompt_sha256(prompt) != prompt_sha256(prompt + " ")


def test_the_stage_writes_prompts_of_pairs_and_problems(tmp_path):
    shown = example()
    split = split_candidate(shown.solution)
    parts = {"prefix": split.prefix, "middle": split.middle, "suffix": split.suffix}
    whole = Pair(id="whole", pytorch_code=shown.reference, cuda_code=shown.solution, source="test")
    write_jsonl(tmp_path / "pairs.jsonl", [whole, whole.model_copy(update={"id": "split", **parts})])
    out = tmp_path / "prompts.jsonl"
    assert main(["prompts", "--tasks", str(tmp_path / "pairs.jsonl"), "--out", str(out), "--style", "compact"]) == 0
    rows = list(read_jsonl(out, PromptRow))
    assert [(row.id, row.task) for row in rows] == [("whole", "end_to_end"), ("split", "infilling")]
    assert all(row.prompt_sha256 == prompt_sha256(row.prompt) for row in rows)
    assert json.loads(manifest_path(out).read_text())["extra"]["prompts"] == 2

    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "1_Add.py").write_text(shown.reference)
    assert main(["problems", "--source", str(tmp_path), "--levels", "1", "--out", str(tmp_path / "p.jsonl")]) == 0
    for tasks in (tmp_path, tmp_path / "p.jsonl"):
        assert main(["prompts", "--tasks", str(tasks), "--out", str(out), "--chat", "llama"]) == 0
        assert [row.id for row in read_jsonl(out, PromptRow)] == ["level1/1_Add"]


def test_a_row_that_is_no_task_is_named_with_its_line(tmp_path, capsys):
    (tmp_path / "p.jsonl").write_text('{"id": "x", "code": "pass"}\n')
    assert main(["prompts", "--tasks", str(tmp_path / "p.jsonl"), "--out", str(tmp_path / "out.jsonl")]) == 2
    assert "p.jsonl:1: missing field 'level'" in capsys.readouterr().err
