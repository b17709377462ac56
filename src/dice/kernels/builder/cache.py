"""Content-addressed store of build results; safe for many processes on a shared file system.

    objects/ab/abcdef.../result.json    the BuildResult, with the object's sha256: what does not match is built anew
    objects/ab/abcdef.../extension.so   unless the result is a compile error; behind its ELF image, what the loader needs
    locks/abcdef....lock                held while someone builds this key
    toolchains/.../headers/...          precompiled headers (precompiled.py): up to a gigabyte for each toolchain
    scanned                             its modification time: when a process last looked whether all this fits

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
from dice.kernels.records.object_facts import append_facts, object_facts
from dice.locks import file_lock
from dice.manifest import sha256_file

OBJECT_NAME = "extension.so"
RESULT_NAME = "result.json"
_SCAN_INTERVAL_S = 120.0


class BuildCache:
    """The store under `folder`, at most `max_gib`.

    What was used in the last `keep_s` seconds is never evicted, nor a precompiled header used in `keep_headers_s`.
    """

    def __init__(self, folder: Path, max_gib: float, keep_s: float = 3600.0, keep_headers_s: float = 86400.0) -> None:
        self.folder = folder
        self.max_bytes = int(max_gib * (1 << 30))
        self.keep_s = keep_s
        self.keep_headers_s = keep_headers_s
        for name in ("objects", "locks"):
            try:
                (folder / name).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise HarnessError(f"{folder}: the build cache cannot be written ({error.strerror}).") from error

    def entry_folder(self, key: str) -> Path:
        """Where the entry of `key` is or would be."""
        return self.folder / "objects" / key[:2] / key

    def get(self, key: str) -> BuildResult | None:
        """The result of `key`, marked as used now; None when absent, incomplete, not what was put there, or without the
        libraries that it names: a cache that was copied or moved is built anew."""
        folder = self.entry_folder(key)
        try:
            result = BuildResult.model_validate_json((folder / RESULT_NAME).read_text())
            if result.status == "built":
                path = folder / OBJECT_NAME
                if sha256_file(path) != result.object_sha256 or not _has_its_libraries(path):
                    return None
                result = result.model_copy(update={"path": str(path)})
            os.utime(folder)
        except (OSError, ValueError, HarnessError):
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
        self._evict_now_and_then()
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

    def _evict_now_and_then(self) -> None:
        """Evict, unless some process did so lately: a short run has to clean up too."""
        scanned = self.folder / "scanned"
        with contextlib.suppress(OSError):
            if time.time() - scanned.stat().st_mtime < _SCAN_INTERVAL_S:
                return
        scanned.touch()
        self.evict()

    def evict(self) -> int:
        """Remove least recently used entries until the store fits its limit; returns how many were removed."""
        for pattern in ("objects/??/.*", "toolchains/*/headers/.*"):
            for folder in self.folder.glob(pattern):
                self._remove_stale(folder)
        now = time.time()
        found = [(folder, now - self.keep_s) for folder in self.folder.glob("objects/??/[!.]*")]
        headers = [lock.with_suffix("") for lock in self.folder.glob("toolchains/*/headers/*.lock")]
        found += [(folder, now - self.keep_headers_s) for folder in headers if folder.is_dir()]
        entries: list[tuple[float, float, int, Path]] = []
        for folder, newest in found:
            with contextlib.suppress(OSError):
                size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
                entries.append((folder.stat().st_mtime, newest, size, folder))
        total = sum(size for _, _, size, _ in entries)
        removed = 0
        for used, newest, size, folder in sorted(entries):
            if total <= self.max_bytes:
                break
            if used > newest:
                continue
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


def _has_its_libraries(path: Path) -> bool:
    """Whether the libraries that the loader loads first are where they were when the object was put."""
    return all(Path(library).is_file() for library in object_facts(path).get("libraries", ()))


def _remove(folder: Path) -> None:
    """Remove an entry at once for others, by a rename, and then its files."""
    doomed = folder.with_name(f".{folder.name}.{os.getpid()}.removed")
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)
