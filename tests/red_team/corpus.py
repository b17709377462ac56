"""The red-team corpus: candidates with their expectations in a comment block at the top.

# problem: relu                     file in problems/
# mechanism: one line               (tricks) what it does / (honest) what looks suspicious and is not
# catalogue: 31                     number in docs/reference/tricks.md
# static: name name                 findings that the text alone must give
# run: name name                    findings that a run must give as well
# cpu_run: name name                the same, of a run on the CPU back end alone: no check of a GPU's makes them
# cuda_run: name name               the same, of a run on a GPU, in the place of those of `run`
# near: name                        (honest) findings that a careless rule would make of it
# warns: name name                (honest) findings of the text alone, which warn until a run shows that it is not so
# status: deceptive | wrong_value   final statuses that are right, strict protocol
# cuda_status: wrong_value          the same on a GPU, where they are others there
# paper: deceptive                  (tricks) final statuses that are right under the paper protocol; absent: any
# needs: gpu                        absent: runs on the CPU back end as well
# include: relu                     parts/relu.py is put in the place of this line (one source, one build)

A header that is not in this list is refused, so that a misspelt one asks for nothing unseen.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dice.kernels.records.verdict import Backend

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Candidate:
    """One file of the corpus."""

    name: str
    problem: str
    problem_code: str
    code: str
    header: dict[str, str]

    @property
    def static(self) -> set[str]:
        """Findings that the text must give."""
        return set(self.header.get("static", "").split())

    @property
    def run(self) -> set[str]:
        """Findings that a run must give besides."""
        return set(self.header.get("run", "").split())

    @property
    def cpu_run(self) -> set[str]:
        """Findings that a run must give on the CPU back end alone."""
        return set(self.header.get("cpu_run", "").split())

    @property
    def cuda_run(self) -> set[str]:
        """Findings that a run must give on a GPU."""
        return set(self.header["cuda_run"].split()) if "cuda_run" in self.header else self.run

    def run_on(self, backend: Backend) -> set[str]:
        """Findings that a run must give on this back end."""
        return self.run | self.cpu_run if backend == "cpu" else self.cuda_run

    @property
    def findings(self) -> set[str]:
        """All that it must give somewhere."""
        return self.static | self.run | self.cpu_run | self.cuda_run

    @property
    def near(self) -> set[str]:
        """Findings that an honest candidate comes close to."""
        return set(self.header.get("near", "").split())

    @property
    def warns(self) -> set[str]:
        """Findings of an honest candidate's text that no run confirms."""
        return set(self.header.get("warns", "").split())

    @property
    def statuses(self) -> set[str]:
        """Final statuses under the strict protocol that are right on the CPU back end."""
        return self.statuses_on("cpu")

    def statuses_on(self, backend: Backend) -> set[str]:
        """Final statuses under the strict protocol that are right on this back end."""
        key = "cuda_status" if backend == "cuda" and "cuda_status" in self.header else "status"
        return set(self.header[key].replace("|", " ").split())

    @property
    def paper(self) -> set[str]:
        """Final statuses under the paper protocol that are right; empty: any."""
        return set(self.header.get("paper", "").replace("|", " ").split())

    @property
    def needs_gpu(self) -> bool:
        """Whether it means anything only on a GPU."""
        return self.header.get("needs") == "gpu"

    def expected_on(self, backend: Backend) -> bool:
        """Whether its header asks for anything on this back end. Elsewhere it is neither missed nor caught."""
        return not self.needs_gpu if backend == "cpu" else bool(self.static | self.cuda_run) or not self.cpu_run


def read_candidate(path: Path) -> Candidate:
    """Parse the header, put the included part in its place. Raises ValueError for a word that no header has."""
    header: dict[str, str] = {}
    lines: list[str] = []
    for line in path.read_text().splitlines():
        key, colon, value = line.removeprefix("# ").partition(": ")
        if line.startswith("# ") and not lines and not (colon and key in _KEYS):
            raise ValueError(f"{path.name}: `{line}` is no header; those there are: {', '.join(_KEYS)}")
        if line.startswith("# ") and colon and key in _KEYS:
            header[key] = value.strip()
            if key == "include":
                lines += (FOLDER / "parts" / f"{value.strip()}.py").read_text().splitlines()
        else:
            lines.append(line)
    if header.get("needs") not in (None, "gpu"):
        raise ValueError(f"{path.name}: `needs: {header['needs']}`; the only word is gpu")
    problem = FOLDER / "problems" / f"{header['problem']}.py"
    return Candidate(path.stem, header["problem"], problem.read_text(), "\n".join(lines) + "\n", header)


_KEYS = (
    "problem",
    "mechanism",
    "catalogue",
    "static",
    "run",
    "cpu_run",
    "cuda_run",
    "near",
    "warns",
    "status",
    "cuda_status",
    "paper",
    "needs",
    "include",
)


def corpus(kind: str) -> list[Candidate]:
    """All of `tricks` or `honest`, by name."""
    return [read_candidate(path) for path in sorted((FOLDER / kind).glob("*.py"))]
