"""Many synthetic pairs as one: one build and one verdict for dozens of operators."""

from __future__ import annotations

import ast
import re

from dice.data.pair import Pair


class _Renamed(ast.NodeTransformer):
    """Names of the module level with a suffix of their own."""

    def __init__(self, tree: ast.Module, suffix: str) -> None:
        self.names: set[str] = set()
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                self.names.add(node.name)
            elif isinstance(node, ast.Assign):
                self.names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        self.suffix = suffix

    def _new(self, name: str) -> str:
        return name + self.suffix if name in self.names else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(self._new(node.id), node.ctx), node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._new(node.arg)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._new(node.name)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._new(node.name)
        return self.generic_visit(node)


def _module(text: str, suffix: str) -> str:
    """A program without its imports, its own names made unique."""
    tree = ast.parse(text)
    body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return ast.unparse(_Renamed(tree, suffix).visit(ast.Module(body, [])))


_IMPORTS = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
_WHOLE = """
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([{parts}])

    def forward(self, *inputs):
        results = []
        for part, count in zip(self.parts, {counts}):
            results.append(part(*inputs[:count]))
            inputs = inputs[count:]
        return tuple(results)
"""


def batched(pairs: list[Pair], name: str) -> Pair:
    """One pair whose result is the tuple of the results of `pairs`, with one extension for all of them."""
    models, sources, declared, bound, classes, counts = [], [], [], [], [], []
    for number, pair in enumerate(pairs):
        assert pair.middle is not None
        assert pair.suffix is not None
        suffix = f"_{number}"
        models.append(_module(pair.pytorch_code, suffix))
        text = pair.middle.removeprefix('source = """').removesuffix('"""')
        text = re.sub(r"^#include .*\n", "", text, flags=re.MULTILINE)
        own = set(re.findall(r"^(?:__global__|__device__|torch::Tensor)[^(]*?(\w+)\(", text, re.MULTILINE))
        rename = re.compile(rf"\b({'|'.join(sorted(own))})\b")
        sources.append(rename.sub(rf"\g<1>{suffix}", text))
        extension = re.search(r"^(\w+) = load_inline", pair.suffix, re.MULTILINE)
        assert extension is not None
        for function in pair.origin["functions"]:
            signature = re.search(rf"torch::Tensor {function}\([^)]*\);", pair.suffix)
            assert signature is not None
            declared.append(rename.sub(rf"\g<1>{suffix}", signature.group()))
            bound.append(function + suffix)
        tail = pair.suffix[pair.suffix.index("class ModelNew") :]
        tail = re.sub(rf"\b{extension[1]}\.(\w+)\(", rf"everything.\g<1>{suffix}(", tail)
        classes.append(
            tail.replace("class ModelNew", f"class ModelNew{suffix}", 1).replace("(ModelNew,", f"(ModelNew{suffix},")
        )
        forward = next(node for node in ast.walk(ast.parse(tail)) if getattr(node, "name", "") == "forward")
        counts.append(len(forward.args.args) - 1)  # pyright: ignore[reportAttributeAccessIssue]
    inputs = " + ".join(f"get_inputs_{k}()" for k in range(len(pairs)))
    references = ", ".join(f"Model_{k}(*get_init_inputs_{k}())" for k in range(len(pairs)))
    answers = ", ".join(f"ModelNew_{k}()" for k in range(len(pairs)))
    problem = [_IMPORTS, *models, _WHOLE.format(name="Model", parts=references, counts=counts)]
    problem += [f"def get_inputs():\n    return {inputs}\n\n\ndef get_init_inputs():\n    return []\n"]
    answer = [
        _IMPORTS + "from torch.utils.cpp_extension import load_inline\n",
        'source = """\n#include <torch/extension.h>\n' + "\n".join(sources) + '"""\n',
        'declarations = """\n' + "\n".join(declared) + '\n"""\n',
        f"everything = load_inline(name='everything', cpp_sources=declarations, cuda_sources=source, functions={bound})\n",
        *classes,
        _WHOLE.format(name="ModelNew", parts=answers, counts=counts),
    ]
    return pairs[0].model_copy(
        update={
            "id": name,
            "pytorch_code": "\n\n".join(problem),
            "cuda_code": "\n\n".join(answer),
            "prefix": None,
            "middle": None,
            "suffix": None,
        }
    )
