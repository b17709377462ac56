"""Sensitive actions of the candidate's own code, reported by the interpreter while it runs.

`AuditTrail` listens to CPython's audit events (PEP 578): files, processes, sockets, ctypes, frames, garbage collector.
`ExceptionTrace` sees exceptions that the candidate caught. Both only collect; `dice.kernels.checks` decides.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import os
import stat
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from dice.kernels.candidate.opaque import stand_in
from dice.kernels.records.evidence import Access, Phase


def _folders(paths: Iterable[str | Path]) -> set[str]:
    """Folders as they are named and as they are found: a virtual environment behind a link is both."""
    return {str(folder) for path in paths for folder in (Path(path).absolute(), Path(path).resolve())}


_STDLIB = tuple(_folders(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")))
_ON_THE_PATH = _folders(entry for entry in sys.path if entry)
_PACKAGES = tuple(
    _folders(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    | _folders([Path(torch.__file__).parents[1], Path(__file__).parents[3]])
    | {entry for entry in _ON_THE_PATH if not any(library.startswith(entry) for library in _STDLIB)}
    - {f"{library}/lib-dynload" for library in _STDLIB}
)
"""Folders of installed packages: this interpreter's, and what else is on its path before a candidate runs."""

_ANY_CALLER = frozenset(
    """
    subprocess.Popen os.system os.exec os.fork os.forkpty os.posix_spawn os.spawn os.kill os.killpg
    mmap.__new__ signal.pthread_kill
    socket.__new__ socket.connect socket.bind socket.getaddrinfo urllib.Request ctypes.dlopen ctypes.dlsym
    time.sleep import_module
    """.split()  # noqa: SIM905
)
"""Audit events that count even through the standard library."""
_PATH_EVENTS = frozenset(
    ["os.remove", "os.rename", "os.link", "os.symlink", "os.chmod", "os.chown", "shutil.rmtree"],
)
"""Audit events that count, through the standard library too, when their path lies outside the scratch folder."""
_DIRECT_CALLER = frozenset(
    """
    gc.get_objects gc.get_referrers gc.get_referents object.__getattr__ sys._getframe sys._current_frames sys.settrace
    sys.setprofile sys.addaudithook object.__setattr__ function.__new__ code.__new__ marshal.loads pickle.find_class exec
    compile
    ctypes.call_function ctypes.cdata ctypes.string_at
    """.split()  # noqa: SIM905
)
"""Audit events that the standard library raises for harmless reasons: they count only when called directly."""
_LABELS = ("__name__", "__qualname__", "__doc__")
"""What a class is called and described by: nothing that runs asks for it."""
_FRAMES = ("tb_frame",)
"""Attributes that give frames, among those for which Python raises audit events."""
_MOST_DETAILS = 64
"""Most details of one kind of action on one line: a loop over all files must not fill the verdict."""
_MOST_CHARACTERS = 4 << 20
"""Of the texts of modules that are kept: more than the checks read, so that what is left out passes nowhere."""
_AND_MORE = "(and more)"
_BEHIND_A_STAND_IN = 3
"""Calls between `AuditTrail._hear` and the function of `opaque.stand_in` that a candidate called."""
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class AuditTrail:
    """Sensitive actions of the candidate's own code, from CPython's audit events (PEP 578).

    `candidate`: path of the candidate's file. `scratch`: folder in which it may write; `/tmp` is part of it where it is
    the same folder as `scratch/tmp`. An action belongs to the candidate when the nearest caller outside the standard
    library is neither an installed package nor this project.
    An audit hook cannot be removed, so install it only in the candidate's process.
    """

    def __init__(self, candidate: str | Path, scratch: str | Path) -> None:
        self._candidate = str(candidate)
        own = str(Path(scratch).resolve())
        private_tmp = os.path.exists(f"{scratch}/tmp") and os.path.samefile("/tmp", f"{scratch}/tmp")
        self._own_folders = (own, "/tmp") if private_tmp else (own,)
        self.tell: Callable[[Access], None] | None = None
        """Called with each access when it first happens; what it reports then cannot be taken back."""
        self._phase: Phase | None = None
        self._last_phase: Phase | None = None
        self._busy = False
        self.modules: dict[str, str] = {}
        """Text of the modules that were compiled from files of the scratch folder, the candidate's left out, by path."""
        self._seen: dict[tuple[str, str, str, int], int] = {}
        self._details: dict[tuple[str, str, int], int] = {}

    def install(self) -> None:
        """Start listening; nothing is recorded outside `phase`. `time.sleep` raises no audit event before Python 3.13, nor
        does the import of a module that is there already, so functions that do take their places."""
        sys.addaudithook(self._hear)
        pause, load = time.sleep, importlib._bootstrap._gcd_import  # pyright: ignore[reportAttributeAccessIssue]

        def sleep(seconds: float) -> None:
            self._hear("time.sleep", (seconds,), _BEHIND_A_STAND_IN)
            pause(seconds)

        def gcd_import(name: str, *args: Any) -> Any:
            self._hear("import_module", (name,), _BEHIND_A_STAND_IN)
            return load(name, *args)

        seconds = inspect.Parameter("seconds", inspect.Parameter.POSITIONAL_ONLY)
        time.sleep = stand_in(pause, sleep, inspect.Signature([seconds]))
        importlib._bootstrap._gcd_import = stand_in(load, gcd_import)  # pyright: ignore[reportAttributeAccessIssue]

    @contextlib.contextmanager
    def phase(self, name: Phase) -> Iterator[None]:
        """Record what happens inside as `name`."""
        self._phase = name
        try:
            yield
        finally:
            self._phase, self._last_phase = None, name

    def accesses(self) -> list[Access]:
        """What was recorded, in order of first appearance; at most 65 entries for one kind of event on one line in one
        phase."""
        return [_access(key, count) for key, count in self._seen.items()]

    def _hear(self, event: str, args: tuple[Any, ...], depth: int = 1) -> None:
        """An audit event; `depth`: how many calls lie between this one and its cause."""
        phase = self._phase
        if event == "time.sleep" and threading.current_thread() is not threading.main_thread():
            phase = phase or self._last_phase  # of a thread that was begun in it
        if phase is None or self._busy:
            return
        if event == "compile":
            self._note_text(*args)
        if event == "object.__getattr__" and args[1] not in _FRAMES:
            return
        if event == "object.__setattr__" and self._labels_its_own(*args[:2]):
            return
        direct = event in _DIRECT_CALLER
        if not direct and event not in _ANY_CALLER and event not in _PATH_EVENTS and event != "open":
            return
        self._busy = True
        try:
            detail = self._open_detail(args) if event == "open" else " ".join(str(arg) for arg in args[:2])
            if event in _PATH_EVENTS and self._is_own(args[0]):
                return
            if detail is None:
                return
            frame = self._candidate_frame(sys._getframe(depth), direct, event)
            if frame is not None:
                if event == "open":
                    event = f"open:{detail[0]}"
                    detail = detail[2:]
                self._note(event, detail[:200], phase, frame.f_lineno)
        finally:
            self._busy = False

    def _labels_its_own(self, kind: Any, attribute: str) -> bool:
        """Whether a class of the candidate's file is given another name or text."""
        if attribute not in _LABELS or not issubclass(type(kind), type):
            return False
        module = sys.modules.get(type.__getattribute__(kind, "__module__"))
        return module is not None and vars(module).get("__file__") == self._candidate

    def _note_text(self, text: Any, path: Any) -> None:
        if not isinstance(path, str) or path == self._candidate or not os.path.isabs(path) or not self._is_own(path):
            return
        if isinstance(text, bytes):
            with contextlib.suppress(SyntaxError, ValueError):
                text = importlib.util.decode_source(text)
        if not isinstance(text, str) or text in self.modules.values():
            return
        if sum(map(len, self.modules.values())) < _MOST_CHARACTERS:
            name, number = path, 1
            while name in self.modules:  # the file was written again; what was imported before has run
                name, number = f"{path} ({number + 1})", number + 1
            self.modules[name] = text

    def _note(self, event: str, detail: str, phase: Phase, line: int) -> None:
        key = (event, detail, phase, line)
        if key not in self._seen:
            known = self._details.get((event, phase, line), 0)
            self._details[event, phase, line] = known + 1
            if known >= _MOST_DETAILS:
                key = (event, _AND_MORE, phase, line)
        if key not in self._seen and self.tell is not None:
            self.tell(_access(key, 1))
        self._seen[key] = self._seen.get(key, 0) + 1

    def _open_detail(self, args: tuple[Any, ...]) -> str | None:
        """`w PATH` for writes outside scratch, `r PATH` for reads of /proc and of devices; None for the rest."""
        path, mode, flags = args
        if isinstance(path, int):
            writes = mode and any(letter in mode for letter in "wax+") and path > 2
            return f"w fd {path}" if writes and not self._is_own_file(path) else None
        name = os.path.abspath(os.fsdecode(path))
        if name in ("/dev/null", "/dev/urandom", "/dev/random"):
            return None
        writes = any(letter in mode for letter in "wax+") if mode else bool(flags & _WRITE_FLAGS)
        if writes:
            return None if self._is_own(name) else f"w {name}"
        return f"r {name}" if name.startswith(("/proc/", "/dev/")) else None

    def _is_own_file(self, descriptor: int) -> bool:
        """Whether an open descriptor is a file of the scratch folder: not a pipe, a socket or memory."""
        try:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            name = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            return False
        return regular and name.startswith("/") and not name.startswith("/memfd:") and self._is_own(name)

    def _is_own(self, path: Any) -> bool:
        if isinstance(path, int):
            return True  # an open descriptor: its opening was checked
        real = os.path.realpath(os.fsdecode(path))
        return any(os.path.commonpath([real, folder]) == folder for folder in self._own_folders)

    def _candidate_frame(self, frame: FrameType | None, direct: bool, event: str) -> FrameType | None:
        while frame is not None:
            name = frame.f_code.co_filename
            if name == self._candidate:
                return frame
            if name.startswith("<frozen") or (name.startswith(_STDLIB) and not name.startswith(_PACKAGES)):
                # inspect.stack() and similar functions walk frames as well.
                if direct and not (event == "sys._getframe" and name.endswith("inspect.py")):
                    return None
                frame = frame.f_back
                continue
            if name.startswith(_PACKAGES):
                return None
            return frame  # code made by exec, or a file that the candidate wrote and imported
        return None


def _access(key: tuple[str, str, str, int], count: int) -> Access:
    event, detail, phase, line = key
    return Access(event=event, detail=detail, phase=phase, line=line, count=count)  # pyright: ignore[reportArgumentType]


class ExceptionTrace:
    """Exceptions that were raised in, or passed through, the candidate's frames and did not leave the traced block.

    Traces only frames whose file is the candidate's; about 1 us a line there, nothing elsewhere.
    """

    _QUIET = (StopIteration, GeneratorExit, StopAsyncIteration)

    def __init__(self, candidate: str | Path) -> None:
        self._candidate = str(candidate)
        self._met: dict[int, tuple[BaseException, str]] = {}
        self.hidden: list[str] = []
        """`Type: message (line N)`; filled at the end of the block."""
        self.lines: set[int] = set()
        """Lines of the candidate's file that ran."""

    def __enter__(self) -> ExceptionTrace:
        sys.settrace(self._call)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        sys.settrace(None)
        self.hidden = [text for met, text in self._met.values() if met is not error]
        self._met.clear()

    def _call(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        return self._local if frame.f_code.co_filename == self._candidate else None

    def _local(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        if event == "line":
            self.lines.add(frame.f_lineno)
        elif event == "exception":
            kind, error, _ = arg
            if isinstance(error, BaseException) and not isinstance(error, self._QUIET):
                text = f"{kind.__name__}: {' '.join(str(error).split())[:160]} (line {frame.f_lineno})"
                self._met.setdefault(id(error), (error, text))
        return self._local
