"""The headers that are precompiled: whatever changes one changes its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dice.kernels.builder.headers import HeaderSpec, files_digest, slim_cuda_header

SPEC = HeaderSpec("small", "struct Small { int member; };\n", slim=False)


def test_a_header_is_another_when_what_it_is_made_of_is(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.h").write_text("int a;")
    keys = [
        SPEC.key,
        HeaderSpec("small", "struct Other;\n", slim=False).key,
        HeaderSpec("small", SPEC.text, slim=True).key,
        HeaderSpec("small", SPEC.text, slim=False, kind="cuda").key,
        replace(SPEC, flags=("-O3",)).key,
        HeaderSpec("small", SPEC.text, slim=False, includes=(tmp_path / "own",)).key,
    ]
    assert len(set(keys)) == len(keys)


def test_the_digest_of_files_is_that_of_their_names_and_contents(tmp_path: Path) -> None:
    digests = []
    for i, (name, text) in enumerate([("a.h", "1"), ("a.h", "2"), ("b.h", "1")]):
        folder = tmp_path / str(i) / "include"
        folder.mkdir(parents=True)
        (folder / name).write_text(text)
        digests.append(files_digest(folder))
    assert len(set(digests)) == 3


def test_a_header_that_candidates_often_include_has_a_slim_one_of_its_own() -> None:
    assert slim_cuda_header(["vector", "torch/extension.h"]) == "slim_cuda"
    names = [slim_cuda_header(["vector", extra]) for extra in ("ATen/cuda/CUDAContext.h", "c10/cuda/CUDAGuard.h")]
    assert names == ["slim_cuda_0", "slim_cuda_1"]
