"""`dice verify kernel.py --reference model.py`: judge one kernel, print its page, and again when a file is saved."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dice.errors import DiceError, HarnessError
from dice.jsonl import RowError
from dice.kernels.page.page import Page, make_page
from dice.kernels.page.text import render
from dice.kernels.pool.pool import Pool
from dice.kernels.problems.folder import check_problem
from dice.kernels.records.job import Job

LOOK_EVERY_S = 0.2


@dataclass(frozen=True)
class Files:
    """The two files of a page."""

    kernel: Path
    reference: Path

    def job(self) -> Job:
        """What they hold now. Raises DiceError for a file that cannot be read, or a reference that is no problem."""
        reference = _read(self.reference)
        try:
            check_problem(reference)
        except RowError as error:
            raise DiceError(f"{self.reference}: {error}.") from error
        return Job(problem_id=self.reference.stem, problem_code=reference, sample=0, code=_read(self.kernel))

    def stamp(self) -> tuple[object, ...]:
        """Changes whenever one of them is saved; an editor may take one away for a moment."""
        return tuple(_stamp(path) for path in (self.kernel, self.reference))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DiceError(f"{path}: cannot be read as text ({error}).") from error


def _stamp(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def judge(files: Files, pool: Pool) -> Page:
    """The page of what the files hold now. Raises DiceError where there is no verdict."""
    job = files.job()
    (verdicts,) = pool.run([job])
    broken = next((verdict for verdict in verdicts if verdict.status == "host_error"), None)
    if broken is not None:
        raise HarnessError(broken.message)
    return make_page(str(files.kernel), str(files.reference), job.code or "", verdicts)


def show(page: Page, as_json: bool) -> None:
    """Print the page, in colour on a terminal unless NO_COLOR is set (no-color.org)."""
    if as_json:
        print(page.model_dump_json(indent=2), flush=True)
    else:
        print(render(page, colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR")), end="", flush=True)


def saves(files: Files, wait: Callable[[], None] = lambda: time.sleep(LOOK_EVERY_S)) -> Iterator[None]:
    """Yield now, and then each time that a file was saved since. `wait`: between two looks."""
    while True:
        seen = files.stamp()
        yield
        while files.stamp() == seen:
            wait()


def watch(files: Files, pool: Pool, as_json: bool) -> int:
    """A page at each save, until Ctrl-C; what cannot be judged is said, and the watch goes on. The last exit code."""
    code = 0
    with contextlib.suppress(KeyboardInterrupt):
        for _ in saves(files):
            try:
                page = judge(files, pool)
            except DiceError as error:
                print(f"dice verify: {error}", file=sys.stderr, flush=True)
                code = DiceError.exit_code
                continue
            show(page, as_json)
            code = int(not page.correct)
    return code
