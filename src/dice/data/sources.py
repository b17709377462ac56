"""Published row formats, read into pairs: ConCuR, cudaLLM, answers to structural problems, and DICE's RL files.

Every reader applies the one rule for bad rows (`dice.data.pair`) and names the file and the row. Files may be JSON
lines, a JSON array, Parquet or Arrow (both the stream that `datasets.save_to_disk` writes and the IPC file), or a
folder with one such file; a row of Parquet or Arrow is numbered from 1 like a line.

Columns, as public code that reads the sets uses them (neither set could be opened for this project):

concur      lkongam/ConCuR, data-00000-of-00001.arrow: uuid, problem_name, pytorch_code, generated_code,
            generated_think, speedup_over_eager (taishan1994/Concur, ms_swift/convert_arrow_to_sft.py)
cudallm     ByteDance-Seed/cudaLLM-data, sft_cuda_llm_r1.parquet: prompts, responses (ByteDance's SFT script passes
            these keys to verl); the PyTorch program is the last one in the prompt, the CUDA program is in the response.
            Mirrors with messages, py_code or reward_model.ground_truth are read too. The id is the row's number from 0,
            as in the ids of DICE's infilling items.
structural  our own: id, pytorch_code, answers (1 to 5 texts or programs), level
end_to_end  DICE rl_data: idx, level ("0" to "3"), pytorch_code, cuda_code (empty), raw_answer with \\boxed{level}
infilling   DICE rl_data: id, pytorch_code, cuda_code, prefix, middle, suffix
pairs       our own pairs.jsonl
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dice.data.pair import LEVELS, OnBad, Pair, check_rows, parse_pair, rows_with_lines
from dice.errors import DiceError
from dice.jsonl import BadRow, RowError
from dice.kernels.api import extract_code

MAX_ANSWERS = 5
"""A structural problem is tried up to five times (paper, section 3)."""
_BOXED = re.compile(r"\\boxed\{\s*(?:\\text\{)?\s*(?:level\s*)?(\d{1,9})(?!\d)", re.IGNORECASE)
"""A reply that repeats itself may hold thousands of digits, which are no level and more than `int` takes."""
_FENCED = re.compile(r"^[ \t]*```[^\n]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_MODEL = re.compile(r"^class\s+Model\b", re.MULTILINE)

Row = Mapping[str, Any]


# ---- fields ------------------------------------------------------------------------------------------------------


def _text(row: Row, field: str) -> str:
    value = row[field]
    if not isinstance(value, str):
        raise RowError(f"field '{field}' must be text, found {type(value).__name__}")
    return value


def _message(value: Any, role: str, field: str) -> str:
    """The last message of `role` in a chat, or the text itself."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        contents = [one.get("content") for one in value if isinstance(one, Mapping) and one.get("role") == role]
        if contents and isinstance(contents[-1], str):
            return contents[-1]
    raise RowError(f"field '{field}' is neither text nor a chat with a message of the {role}")


def _program(text: str, field: str) -> str:
    """The CUDA program in an answer or, where there is no fence, the text itself."""
    if "```" not in text and "<think>" not in text and "</think>" not in text:
        return text
    found = extract_code(text)
    if found.code is None:
        raise RowError(f"field '{field}': {found.reason}")
    return found.code


def _task(prompt: str, field: str) -> str:
    """The PyTorch program of a prompt's task: the last fenced one, since an earlier one is the worked example."""
    programs = [block for block in _FENCED.findall(prompt) if _MODEL.search(block) and "def get_inputs" in block]
    if not programs:
        raise RowError(f"field '{field}' holds no fenced program with class Model and get_inputs")
    return programs[-1]


def _label(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,9}\s*", value):
        value = int(value)
    if type(value) is not int or not 0 <= value <= max(LEVELS):
        raise RowError(f"unknown level {value!r} (known: 0 to {max(LEVELS)})")
    return value


def boxed_level(answer: str) -> int | None:
    """The level in a labelling model's reply, `\\boxed{2}`; the last one if there are several."""
    found = _BOXED.findall(answer)
    return int(found[-1]) if found else None


def label_of(pair: Pair) -> int | None:
    """The difficulty that the data give for a row: its source's label, which may be 0, or its level."""
    label = pair.origin.get("label")
    return label if isinstance(label, int) else pair.level


# ---- rows --------------------------------------------------------------------------------------------------------


def _concur(row: Row, number: int) -> dict[str, Any]:
    origin: dict[str, Any] = {"row": number, "problem_name": row.get("problem_name")}
    speedup = row.get("speedup_over_eager")
    if speedup is not None:
        if isinstance(speedup, bool) or not isinstance(speedup, int | float):
            raise RowError("field 'speedup_over_eager' must be a number")
        origin["published_speedup"] = speedup
    return {
        "id": f"concur/{row['uuid'] if row.get('uuid') not in (None, '') else number - 1}",
        "pytorch_code": _text(row, "pytorch_code"),
        "cuda_code": _program(_text(row, "generated_code"), "generated_code"),
        "source": "concur",
        "origin": origin,
    }


def _cudallm(row: Row, number: int) -> dict[str, Any]:
    ground_truth = row.get("reward_model")
    given = [row.get(field) for field in ("pytorch_code", "py_code", "original_python_code")]
    given += [ground_truth.get("ground_truth") if isinstance(ground_truth, Mapping) else None]
    pytorch_code = next((code for code in given if isinstance(code, str) and code.strip()), None)
    if pytorch_code is None:
        field = next((name for name in ("prompts", "prompt", "messages") if row.get(name) is not None), "prompts")
        pytorch_code = _task(_message(row[field], "user", field), field)
    field = next(
        (name for name in ("cuda_code", "responses", "response", "messages") if row.get(name) is not None), "responses"
    )
    return {
        "id": f"cudallm/{number - 1}",
        "pytorch_code": pytorch_code,
        "cuda_code": _program(_message(row[field], "assistant", field), field),
        "source": "cudallm",
        "origin": {"row": number},
    }


def _structural(row: Row, number: int) -> dict[str, Any]:
    answers = row["answers"]
    if not isinstance(answers, list) or not 1 <= len(answers) <= MAX_ANSWERS:
        raise RowError(f"field 'answers' must be a list of 1 to {MAX_ANSWERS} programs")
    programs = [_program(_message(answer, "assistant", "answers"), "answers") for answer in answers]
    return {
        "id": _text(row, "id"),
        "pytorch_code": _text(row, "pytorch_code"),
        "cuda_code": programs[0],
        "source": "structural",
        "level": row.get("level"),
        "origin": {"row": number, "answers": programs},
    }


def _end_to_end(row: Row, number: int) -> dict[str, Any]:
    raw = row.get("raw_answer")
    boxed = boxed_level(raw) if isinstance(raw, str) else None
    given = row.get("level")
    if given is None and boxed is None:
        raise RowError("neither field 'level' nor a \\boxed{level} in 'raw_answer'")
    label = _label(boxed if given is None else given)
    if boxed is not None and boxed != label:
        raise RowError(f"field 'level' says {label} and 'raw_answer' says {boxed}")
    return {
        "id": f"end_to_end/{row['idx']}",
        "pytorch_code": _text(row, "pytorch_code"),
        "cuda_code": row.get("cuda_code") or "",
        "source": "end_to_end",
        "level": label or None,  # 0 is not a level of KernelBench; the label stays in origin
        "origin": {"row": number, "label": label},
    }


def _infilling(row: Row, number: int) -> dict[str, Any]:
    fields = {field: _text(row, field) for field in ("pytorch_code", "cuda_code", "prefix", "middle", "suffix")}
    return {"id": f"infilling/{row['id']}", "source": "infilling", "origin": {"row": number}, **fields}


def _pairs(row: Row, number: int) -> Row:
    return row


@dataclass(frozen=True)
class Format:
    """One published row format."""

    title: str
    convert: Callable[[Row, int], Row]
    """A row and its number from 1 to the fields of a Pair. Raises RowError, KeyError."""
    place: str
    """What to put where, for the message when the file is missing."""
    hub: tuple[str, str] | None = None
    """Repository and file of the Hugging Face hub."""
    has_cuda: bool = True


FORMATS = {
    "concur": Format(
        "ConCuR",
        _concur,
        "download data-00000-of-00001.arrow from https://huggingface.co/datasets/lkongam/ConCuR",
        ("lkongam/ConCuR", "data-00000-of-00001.arrow"),
    ),
    "cudallm": Format(
        "cudaLLM",
        _cudallm,
        "download sft_cuda_llm_r1.parquet from https://huggingface.co/datasets/ByteDance-Seed/cudaLLM-data",
        ("ByteDance-Seed/cudaLLM-data", "sft_cuda_llm_r1.parquet"),
    ),
    "structural": Format(
        "answers to structural problems",
        _structural,
        "write the problems with `dice structural`, let a model answer them and join the answers into JSON lines of "
        "id, pytorch_code and answers",
    ),
    "end_to_end": Format(
        "end-to-end RL programs",
        _end_to_end,
        "take end_to_end_kernel_generation_4000.json from rl_data of https://github.com/deadlykitten4/DICE",
        has_cuda=False,
    ),
    "infilling": Format(
        "infilling RL items",
        _infilling,
        "take the infilling file from rl_data of https://github.com/deadlykitten4/DICE",
    ),
    "pairs": Format("pairs", _pairs, "write it with `dice synth` or `dice curate`"),
}
"""Row formats by the name that command lines and configs use."""

_TABLES = (".parquet", ".arrow")


def read_source(
    name: str, place: str | Path, *, on_bad: OnBad = "refuse", require_cuda: bool | None = None
) -> tuple[list[Pair], list[BadRow]]:
    """Pairs of a file in the format `name`, and the rows that were left out.

    `place`: a file, a folder with one, or `hub` (or `hub@REVISION`) for the format's file on the Hugging Face hub.
    `require_cuda`: whether a row without a CUDA program is bad; None: as the format defines it.
    Raises DiceError with what to put where when the file is missing, and for bad rows as `on_bad` says.
    """
    path, chosen = data_file(name, place), FORMATS[name]
    lines = _table_rows(path) if path.suffix in _TABLES else rows_with_lines(path)
    cuda = chosen.has_cuda if require_cuda is None else require_cuda

    def located() -> Iterator[tuple[int, Row | RowError]]:
        for number, (line, row) in enumerate(lines, 1):
            yield line, row if isinstance(row, RowError) else {"row number": number, "row": row}

    def build(values: Row) -> Pair:
        return parse_pair(chosen.convert(values["row"], values["row number"]), require_cuda=cuda)

    return check_rows(located(), path, build, on_bad=on_bad)


def data_file(name: str, place: str | Path) -> Path:
    """The file that `place` stands for in the format `name`: see `read_source`. Raises DiceError where there is none."""
    chosen = FORMATS.get(name)
    if chosen is None:
        raise DiceError(f"unknown row format '{name}' (known: {', '.join(sorted(FORMATS))}).")
    if str(place) == "hub" or str(place).startswith("hub@"):
        return _download(chosen, str(place).partition("@")[2] or None)
    path = Path(place)
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.suffix in (*_TABLES, ".jsonl", ".json"))
        found = [file for file in found if file.name not in ("dataset_info.json", "state.json")]
        if len(found) == 1:
            return found[0]
        raise DiceError(f"{path}: expected one data file in this folder, found {len(found)}; give the file itself.")
    if not path.is_file():
        raise DiceError(f"{path}: no such file for {chosen.title}; {chosen.place} and give its path.")
    return path


def _download(chosen: Format, revision: str | None) -> Path:
    if chosen.hub is None:
        raise DiceError(f"{chosen.title}: not on the hub; {chosen.place} and give its path.")
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError as error:
        raise DiceError(
            f"{chosen.title}: huggingface_hub is not installed; {chosen.place} and give its path."
        ) from error
    try:
        return Path(hf_hub_download(*chosen.hub, repo_type="dataset", revision=revision))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise DiceError(
            f"{chosen.title}: the Hugging Face hub cannot be reached ({type(error).__name__}); "
            f"on a machine with network {chosen.place}, and give its path here."
        ) from error


def _table_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number from 1, row). Raises DiceError when the file is not what its name says."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise DiceError(f"{path}: reading it needs pyarrow (the extra `data` of this package).") from error
    number = 0
    try:
        with pyarrow.OSFile(str(path), "rb") as stream:
            if path.suffix == ".parquet":
                batches = pyarrow.parquet.ParquetFile(stream).iter_batches(batch_size=256)
            elif stream.read(6) == b"ARROW1":
                reader = pyarrow.ipc.open_file(stream)
                batches = (reader.get_batch(index) for index in range(reader.num_record_batches))
            else:
                stream.seek(0)
                batches = pyarrow.ipc.open_stream(stream)
            for batch in batches:
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise DiceError(f"{path}: after row {number}: not a readable {path.suffix[1:]} file ({error}).") from error
