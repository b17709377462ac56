"""Content-addressed store of build results; safe for many processes on a shared file system.

    objects/ab/abcdef.../result.json    the BuildResult, with the object's sha256: what does not match is built anew
    objects/ab/abcdef.../extension.so   unless the result is a compile error; behind its ELF image, what the loader needs
    locks/abcdef....lock                held while someone builds this key

An entry appears by one rename, so it is complete or absent. Its modification time is its last use.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dice.errors import HarnessError
from dice.kernels.records.extension import BuildResult
from dice.kernels.records.object_facts import append_facts
from dice.locks import file_lock
from dice.manifest import sha256_file

OBJECT_NAME = "extension.so"
RESULT_NAME = "result.json"
_SCAN_INTERVAL_S = 120.0


class BuildCache:
    """The store under `folder`; at most `max_gib`, entries used in the last `keep_s` seconds are never evicted."""

    def __init__(self, folder: Path, max_gib: float, keep_s: float = 3600.0) -> None:
        self.folder = folder
        self.max_bytes = int(max_gib * (1 << 30))
        self.keep_s = keep_s
        self._next_scan = time.monotonic() + _SCAN_INTERVAL_S
        for name in ("objects", "locks"):
            try:
                (folder / name).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise HarnessError(f"{folder}: the build cache cannot be written ({error.strerror}).") from error

    def entry_folder(self, key: str) -> Path:
        """Where the entry of `key` is or would be."""
        return self.folder / "objects" / key[:2] / key

    def get(self, key: str) -> BuildResult | None:
        """The result of `key`, marked as used now; None when absent, incomplete, or not what was put there."""
        folder = self.entry_folder(key)
        try:
            result = BuildResult.model_validate_json((folder / RESULT_NAME).read_text())
            if result.status == "built":
                path = folder / OBJECT_NAME
                if sha256_file(path) != result.object_sha256:
                    return None
                result = result.model_copy(update={"path": str(path)})
            os.utime(folder)
        except (OSError, ValueError):
            return None
        return result.model_copy(update={"cached": True})

    def put(self, key: str, result: BuildResult, shared_object: Path | None, facts: dict[str, Any]) -> BuildResult:
        """Store a result; returns it with the path in the cache. `facts`: what the loader needs, kept in the object.

        Raises HarnessError when the disk is full.
        """
        folder = self.entry_folder(key)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{key[:12]}."))
            try:
                if shared_object is not None:
                    shutil.copyfile(shared_object, temporary / OBJECT_NAME)
                    append_facts(temporary / OBJECT_NAME, facts)
                    (temporary / OBJECT_NAME).chmod(0o755)
                    digest = sha256_file(temporary / OBJECT_NAME)
                    place = {"path": str(folder / OBJECT_NAME), "object_sha256": digest}
                    result = result.model_copy(update=place)
                (temporary / RESULT_NAME).write_text(result.model_dump_json())
                temporary.chmod(0o755)
                with contextlib.suppress(FileNotFoundError):
                    _remove(folder)  # an entry that `get` found incomplete or changed
                temporary.rename(folder)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
        except OSError as error:
            raise HarnessError(f"{folder}: the build cache cannot be written ({error.strerror}).") from error
        if time.monotonic() > self._next_scan:
            self._next_scan = time.monotonic() + _SCAN_INTERVAL_S
            self.evict()
        return result

    @contextlib.contextmanager
    def building(self, key: str, timeout_s: float) -> Iterator[None]:
        """Hold the right to build `key`; others wait. A killed builder's right is free again at once."""
        path = self.folder / "locks" / f"{key}.lock"
        with file_lock(path, timeout_s):
            try:
                yield
            finally:
                path.unlink(missing_ok=True)

    def evict(self) -> int:
        """Remove least recently used entries until the store fits its limit; returns how many were removed."""
        entries: list[tuple[float, int, Path]] = []
        for folder in self.folder.glob("objects/??/*"):
            if folder.name.startswith("."):
                self._remove_stale(folder)
                continue
            with contextlib.suppress(OSError):
                size = sum(path.stat().st_size for path in folder.iterdir())
                entries.append((folder.stat().st_mtime, size, folder))
        total = sum(size for _, size, _ in entries)
        newest = time.time() - self.keep_s
        removed = 0
        for used, size, folder in sorted(entries):
            if total <= self.max_bytes or used > newest:
                break
            with contextlib.suppress(FileNotFoundError):
                _remove(folder)
                removed += 1
            total -= size
        return removed

    def _remove_stale(self, folder: Path) -> None:
        """Remove what a killed process left half-written."""
        with contextlib.suppress(OSError):
            if folder.stat().st_mtime < time.time() - 2 * self.keep_s:
                shutil.rmtree(folder, ignore_errors=True)


def _remove(folder: Path) -> None:
    """Remove an entry at once for others, by a rename, and then its files."""
    doomed = folder.with_name(f".{folder.name}.{os.getpid()}.removed")
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)
