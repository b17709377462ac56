"""Which fields of `stage_config` dataclasses nothing reads.

Names are no help: a dead `seed` hides behind every other `seed`. So the types decide, and pyright knows them. In a copy of
the sources every field is a property that is marked as deprecated; pyright then reports each place that reads it.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_IMPORTS = "from typing import Any as _Any\nfrom typing_extensions import deprecated as _deprecated"
_ANY_ARGUMENTS = "def __init__(self, *args: _Any, **kwargs: _Any) -> None: ..."


class _Marker(ast.NodeTransformer):
    """Turns the fields of every `stage_config` class into deprecated properties; `__post_init__` is no reader."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.fields: set[str] = set()

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        if "stage_config" not in decorators:
            return node
        body = ast.parse(_ANY_ARGUMENTS).body
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                field = f"{self.module}.{node.name}.{statement.target.id}"
                self.fields.add(field)
                kind = ast.unparse(statement.annotation)
                text = f"@property\n@_deprecated('{field}')\ndef {statement.target.id}(self) -> {kind}: ..."
                body += ast.parse(text).body
            elif not (isinstance(statement, ast.FunctionDef) and statement.name == "__post_init__"):
                body.append(statement)
        node.body, node.decorator_list = body, []
        return node


def unread_settings(package: Path, copy: Path, more: Mapping[str, str] | None = None) -> set[str]:
    """`module.Class.field` of every setting in `package` that is read neither there nor in `more` (file name -> code).

    `copy` is an empty folder to work in. Raises RuntimeError where pyright says nothing that can be read.
    """
    sources = {path.relative_to(package.parent): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    fields: set[str] = set()
    for path, text in {**sources, **{Path(name): text for name, text in (more or {}).items()}}.items():
        tree = ast.parse(text)
        marker = _Marker(".".join(path.with_suffix("").parts))
        marker.visit(tree)
        fields |= marker.fields
        after_future = 1 + max(
            (place for place, node in enumerate(tree.body) if getattr(node, "module", "") == "__future__"), default=-1
        )
        tree.body[after_future:after_future] = ast.parse(_IMPORTS).body
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_text(ast.unparse(tree), encoding="utf-8")
    settings = {"include": ["."], "typeCheckingMode": "off", "reportDeprecated": "error"}
    (copy / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = ["-m", "pyright", "--project", str(copy), "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)["generalDiagnostics"]
    except (ValueError, KeyError) as error:
        raise RuntimeError(f"pyright: {done.stdout[-500:]}{done.stderr[-500:]}") from error
    return fields - {line.strip() for entry in report for line in entry["message"].splitlines()}
