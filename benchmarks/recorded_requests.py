"""What candidate files ask of `torch.utils.cpp_extension`: found by running them with a recorder in its place.

    requests = record(code)          # ExtensionRequests, in the order of the calls

The file is imported in a fork of this process (PyTorch is imported once), then `ModelNew` is made and called if nothing was asked for until then. No
extension is built; what the recorder returns accepts any call. CUDA is said to be there, so that files which ask go on.
A file that gets to no call that way (its model is too large for a CPU, say) is read instead: the calls whose arguments
are literals, or names that are given one literal value in the file.
"""  # noqa: E501

from __future__ import annotations

import ast
import contextlib
import json
import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dice.kernels.candidate.extension_call import load, load_inline
from dice.kernels.records.extension import ExtensionRequest


def record(code: str, timeout_s: float = 90.0) -> list[ExtensionRequest]:
    """Requests of one candidate file; none when it asks for none before it fails or the time is up."""
    import torch.utils.cpp_extension  # noqa: F401  # before the fork

    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "candidate.py"), Path(folder, "requests.jsonl")
        path.write_text(code)
        out.touch()
        process = multiprocessing.get_context("fork").Process(target=_child, args=(str(path), str(out)))
        process.start()
        process.join(timeout_s)
        if process.is_alive():
            process.kill()
            process.join()
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    if not rows:
        rows = [{"request": request.model_dump_json()} for request in read_calls(code)]
    unique = {row["request"]: ExtensionRequest.model_validate_json(row["request"]) for row in rows}
    return list(unique.values())


def read_calls(code: str) -> list[ExtensionRequest]:
    """Calls of load_inline whose arguments can be read from the text."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return []
    values: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
    found = []
    for node in ast.walk(tree):
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name == "load_inline":
            with contextlib.suppress(ValueError, TypeError):
                arguments = [_literal(value, values) for value in node.args]
                named = {k.arg: _literal(k.value, values) for k in node.keywords if k.arg}
                found.append(load_inline(*arguments, **named))
    return found


def _literal(node: ast.expr, values: dict[str, ast.expr]) -> Any:
    if isinstance(node, ast.Name) and node.id in values:
        node = values[node.id]
    if isinstance(node, ast.List):
        return [_literal(element, values) for element in node.elts]
    return ast.literal_eval(node)


def candidates(infilling: list[Path], cuda_l1: list[Path], jsonl: list[Path]) -> Iterator[tuple[str, str]]:
    """(id, code) of all candidates in the files: DICE's infilling JSON, CUDA-L1's JSON lines, any JSON lines with `code`."""
    for path in infilling:
        for i, row in enumerate(json.loads(path.read_text())):
            yield f"infilling/{i:03d}", row["cuda_code"]
    for path in cuda_l1:
        for line in path.read_text().splitlines():
            row = json.loads(line)
            if "load_inline" in (row["custom_code"] or ""):
                yield f"cuda_l1/{row['level_id']}_{row['task_id']}", row["custom_code"]
    for path in jsonl:
        for i, line in enumerate(path.read_text().splitlines()):
            row = json.loads(line)
            code = next((row[name] for name in ("code", "cuda_code", "custom_code") if row.get(name)), None)
            if code is not None:
                yield f"{path.stem}/{row.get('id', i)}", code


class _Anything:
    """Accepts every call and attribute; tensors pass through."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __call__(self, *args: Any, **_: Any) -> Any:
        return args[0] if args else None


def _child(path: str, out: str) -> None:
    import torch
    import torch.utils.cpp_extension as extension

    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silence, descriptor)
    os.chdir(Path(path).parent)
    torch.set_num_threads(1)
    found = 0

    def recorder(make: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal found
            request = make(*args, **kwargs)
            found += 1
            with open(out, "a", encoding="utf-8") as stream:
                stream.write(json.dumps({"request": request.model_dump_json()}) + "\n")
            return _Anything()

        return call

    patched: Any = extension
    patched.load_inline, patched.load = recorder(load_inline), recorder(load)
    pretended: Any = torch.cuda
    pretended.is_available = lambda: True
    pretended.get_device_capability = lambda *_: (9, 0)
    tensors: Any = torch.Tensor
    tensors.cuda = lambda self, *_, **__: self
    tensors.is_cuda = property(lambda _: True)
    modules: Any = torch.nn.Module
    modules.cuda = lambda self, *_: self
    scope: dict[str, Any] = {"__name__": "candidate", "__file__": path}
    exec(compile(Path(path).read_text(), path, "exec"), scope)
    if not found and "ModelNew" in scope:
        model = scope["ModelNew"](*scope.get("get_init_inputs", list)())
        if not found and "get_inputs" in scope:
            with torch.no_grad():
                model(*scope["get_inputs"]())
