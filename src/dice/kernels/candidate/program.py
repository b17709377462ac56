"""The candidate's program as its process holds it: its module, its model, its values, and what was seen of it."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch

from dice.kernels.candidate import extension_loader, probes
from dice.kernels.candidate.accelerator import Accelerator
from dice.kernels.candidate.audit_events import AuditTrail
from dice.kernels.candidate.concealment import conceal
from dice.kernels.candidate.exchange import Exchange
from dice.kernels.candidate.extension_proxy import Ask, ExtensionProxy
from dice.kernels.records.evidence import Access, Change, OpUse

_MODULE_NAME = "candidate"


class Program:
    """One candidate's program.

    scratch: folder of its files. ask: asks the grader for a build. tell: is called with each sensitive action when it first
    happens.
    """

    accelerator: Accelerator
    """From the import on, as `exchange`."""
    exchange: Exchange

    def __init__(self, scratch: str, ask: Ask, tell: Callable[[Access], None]) -> None:
        self.scratch = scratch
        self.path = f"{scratch}/home/{_MODULE_NAME}.py"
        self.extensions = ExtensionProxy(ask)
        self.trail = AuditTrail(self.path, scratch)
        self.trail.tell = tell
        self.changes: list[Change] = []
        self.python_threads: list[str] = []
        """Names of its threads after the last forward."""
        self.made: dict[str, OpUse] = {}
        """Operators while the model was made."""
        self.loaded: dict[str, OpUse] = {}
        """Operators while it got its weights."""
        self.model: Any = None
        self.inputs: dict[int, Any] = {}
        """By slot."""
        self.outputs: Any = None
        self._module: ModuleType | None = None

    def load(self, code: str, lent: str, device: str, backend: str) -> bool:
        """Import the program; whether it has a ModelNew. lent: a program that is executed in its namespace before."""
        self.accelerator = Accelerator(device, backend)
        self.exchange = Exchange(self.accelerator)
        with open(self.path, "w", encoding="utf-8") as stream:
            stream.write(code)
        self.extensions.install()
        self.trail.install()
        conceal(self.path)
        # Else Python writes beside modules of ours that a candidate is the first to import.
        sys.dont_write_bytecode = True
        loader = importlib.machinery.SourceFileLoader(_MODULE_NAME, self.path)
        spec = importlib.util.spec_from_loader(_MODULE_NAME, loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[_MODULE_NAME] = module
        exec(compile(lent, "<reference>", "exec", dont_inherit=True), module.__dict__)
        before = probes.Snapshot()
        try:
            with self.trail.phase("import"):
                loader.exec_module(module)
        finally:
            self.changes += probes.compare(before, "import")
        self._module = module
        return isinstance(getattr(module, "ModelNew", None), type)

    def make(self, init_inputs: Any) -> None:
        """Make ModelNew, on the device."""
        before, operators = probes.Snapshot(), probes.OpRecorder()
        self.made, self.loaded = operators.ops, {}
        try:
            with self.trail.phase("init"), torch.no_grad(), self._recorded(operators):
                model = self._module.ModelNew(*init_inputs)  # pyright: ignore[reportOptionalMemberAccess]
                if not isinstance(model, torch.nn.Module):
                    raise TypeError("ModelNew is not a torch.nn.Module")
                self.model = model.to(self.accelerator.device)
                self.accelerator.settle()
        finally:
            self.changes += probes.compare(before, "init")

    def load_weights(self, state: dict[str, torch.Tensor]) -> None:
        """Load a state into the model."""
        operators = probes.OpRecorder()
        with torch.no_grad(), self._recorded(operators):
            self.model.load_state_dict(state, strict=True)
        self.accelerator.settle()
        self.loaded = operators.ops

    @staticmethod
    @contextlib.contextmanager
    def _recorded(operators: probes.OpRecorder) -> Iterator[None]:
        """Operators of the block are recorded, those of extensions too."""
        with operators, extension_loader.without_interpreter_lock():
            yield

    def state(self) -> dict[str, torch.Tensor]:
        """The tensors of the model's state, by name."""
        return {name: value for name, value in self.model.state_dict().items() if torch.is_tensor(value)}

    def facts(self) -> dict[str, Any]:
        """What this process saw so far, for the evidence."""
        return {
            "python_threads": self.python_threads,
            "changes": [change.model_dump() for change in self.changes],
            "accesses": [access.model_dump() for access in self.trail.accesses()],
            "modules": self.trail.modules,
            "extensions": self.extensions.uses(),
            "kernels": self.kernels(),
            "made": {name: use.model_dump() for name, use in self.made.items()},
            "loaded": {name: use.model_dump() for name, use in self.loaded.items()},
        }

    @staticmethod
    def kernels() -> dict[str, str]:
        """Names of the kernels of its extensions, by the hash that their launches are marked with."""
        return {f"{key:016x}": name for key, name in extension_loader.kernels().items()}
