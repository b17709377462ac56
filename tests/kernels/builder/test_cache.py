"""The store of build results: complete or absent, only what was put there, and within its limit."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from dice.errors import HarnessError
from dice.kernels.builder.cache import BuildCache
from dice.kernels.records.extension import BuildResult
from dice.kernels.records.object_facts import object_facts

KEY = "ab" + "0" * 38
OTHER = "cd" + "1" * 38


@pytest.fixture
def cache(tmp_path: Path) -> BuildCache:
    return BuildCache(tmp_path / "cache", max_gib=1.0)


def refused(key: str = KEY) -> BuildResult:
    return BuildResult(status="compile_error", key=key, route="split", message="error: no such name")


def put_object(cache: BuildCache, folder: Path, key: str = KEY, content: bytes = b"\x7fELF code") -> BuildResult:
    (folder / "work.so").write_bytes(content)
    result = BuildResult(status="built", key=key, route="split", path=str(folder / "work.so"))
    return cache.put(key, result, folder / "work.so", {"module": "m"})


def test_an_error_comes_back_as_it_was_put(cache: BuildCache) -> None:
    assert cache.get(KEY) is None
    cache.put(KEY, refused(), None, {})
    found = cache.get(KEY)
    assert found is not None
    assert found == refused().model_copy(update={"cached": True})
    assert cache.get(OTHER) is None


def test_an_object_is_copied_with_what_the_loader_needs(cache: BuildCache, tmp_path: Path) -> None:
    stored = put_object(cache, tmp_path)
    (tmp_path / "work.so").unlink()
    found = cache.get(KEY)
    assert found is not None
    assert found.path == stored.path
    assert found.object_sha256 == stored.object_sha256
    path = Path(found.path or "")
    assert path.is_relative_to(cache.folder)
    assert path.read_bytes().startswith(b"\x7fELF code")
    assert object_facts(path)["module"] == "m"
    assert os.access(path, os.X_OK)


@pytest.mark.parametrize("damage", ["changed object", "no object", "no result", "half a result"])
def test_what_is_not_as_it_was_put_is_absent_and_can_be_put_again(
    cache: BuildCache, tmp_path: Path, damage: str
) -> None:
    path = Path(put_object(cache, tmp_path).path or "")
    result = path.with_name("result.json")
    if damage == "changed object":
        path.write_bytes(path.read_bytes().replace(b"code", b"evil"))
    elif damage == "half a result":
        result.write_text(result.read_text()[:40])
    else:
        (path if damage == "no object" else result).unlink()
    assert cache.get(KEY) is None
    put_object(cache, tmp_path, content=b"\x7fELF again")
    found = cache.get(KEY)
    assert found is not None
    assert Path(found.path or "").read_bytes().startswith(b"\x7fELF again")


def test_an_object_whose_libraries_are_gone_is_built_anew(cache: BuildCache, tmp_path: Path) -> None:
    library, shared = tmp_path / "libsupport.so", tmp_path / "work.so"
    library.touch()
    shared.write_bytes(b"\x7fELF code")
    result = BuildResult(status="built", key=KEY, route="split", path=str(shared))
    cache.put(KEY, result, shared, {"module": "m", "libraries": [str(library)]})
    assert cache.get(KEY) is not None
    library.rename(tmp_path / "moved.so")
    assert cache.get(KEY) is None


def test_a_second_result_takes_the_place_of_the_first_and_leaves_nothing_behind(
    cache: BuildCache, tmp_path: Path
) -> None:
    put_object(cache, tmp_path)
    cache.put(KEY, refused(), None, {})
    found = cache.get(KEY)
    assert found is not None
    assert found.status == "compile_error"
    assert [path.name for path in cache.entry_folder(KEY).parent.iterdir()] == [KEY]
    assert [path.name for path in cache.entry_folder(KEY).iterdir()] == ["result.json"]


def age(cache: BuildCache, key: str, seconds: float) -> None:
    set_age(cache.entry_folder(key), seconds)


def set_age(path: Path, seconds: float) -> None:
    used = time.time() - seconds
    os.utime(path, (used, used))


def test_the_least_recently_used_entries_go_first_until_the_store_fits(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache", max_gib=5000 / (1 << 30), keep_s=100.0)
    keys = [f"{i}{i}" + "f" * 38 for i in range(4)]
    for i, key in enumerate(keys):
        put_object(cache, tmp_path, key, bytes(2000))
        age(cache, key, 10_000 - i)
    assert cache.get(keys[0]) is not None  # used now
    assert cache.evict() == 2
    assert [key for key in keys if cache.get(key) is not None] == [keys[0], keys[3]]


def test_what_was_used_lately_stays_whatever_the_limit(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache", max_gib=0.0, keep_s=100.0)
    for key, seconds in ((KEY, 99.0 - 60.0), (OTHER, 101.0)):
        put_object(cache, tmp_path, key)
        age(cache, key, seconds)
    assert cache.evict() == 1
    assert cache.get(KEY) is not None


def test_what_a_killed_builder_left_half_written_goes_and_what_one_is_writing_stays(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache", max_gib=1.0, keep_s=100.0)
    put_object(cache, tmp_path)
    parent = cache.entry_folder(KEY).parent
    for name, seconds in ((".left", 201.0), (".writing", 199.0 - 60.0)):
        (parent / name).mkdir()
        set_age(parent / name, seconds)
    assert cache.evict() == 0
    assert {path.name for path in parent.iterdir()} == {KEY, ".writing"}


def header_in(cache: BuildCache, name: str, seconds: float) -> Path:
    """A precompiled header of 2,000 bytes, last used `seconds` ago, in the form that `Precompiled` gives it."""
    folder = cache.folder / "toolchains" / "0123" / "headers" / name
    folder.mkdir(parents=True)
    (folder / "header.h.gch").write_bytes(bytes(2000))
    folder.with_name(f"{name}.lock").touch()
    set_age(folder, seconds)
    return folder


def test_headers_that_nobody_used_for_long_count_and_go(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache", max_gib=2500 / (1 << 30), keep_s=10.0, keep_headers_s=100.0)
    put_object(cache, tmp_path, content=bytes(2000))
    left = cache.folder / "toolchains" / "0123" / "headers" / ".killed"
    left.mkdir(parents=True)
    set_age(left, 50.0)
    old, fresh = header_in(cache, "old", 101.0), header_in(cache, "fresh", 60.0)
    age(cache, KEY, 11.0)
    assert cache.evict() == 2
    assert not old.exists()
    assert old.with_name("old.lock").exists()
    assert fresh.exists()
    assert not left.exists()
    assert cache.get(KEY) is None


def test_a_full_store_is_seen_by_a_process_that_builds_once(tmp_path: Path) -> None:
    full = BuildCache(tmp_path / "cache", max_gib=0.0, keep_s=100.0)
    put_object(full, tmp_path)
    age(full, KEY, 101.0)
    full.put(OTHER, refused(OTHER), None, {})
    assert full.entry_folder(KEY).exists()  # some process looked a moment ago
    set_age(full.folder / "scanned", 121.0)
    BuildCache(tmp_path / "cache", max_gib=0.0, keep_s=100.0).put(OTHER, refused(OTHER), None, {})
    assert full.get(KEY) is None


def test_one_at_a_time_builds_a_key_and_another_key_does_not_wait(cache: BuildCache) -> None:
    with cache.building(KEY, timeout_s=1.0):
        with cache.building(OTHER, timeout_s=1.0):
            pass
        with pytest.raises(HarnessError), cache.building(KEY, timeout_s=0.0):
            raise AssertionError
    with cache.building(KEY, timeout_s=0.0):
        pass
    assert not list((cache.folder / "locks").iterdir())


def test_a_folder_that_cannot_be_written_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HarnessError, match="cannot be written"):
        BuildCache(tmp_path / "file", max_gib=1.0)
