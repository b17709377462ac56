"""What a candidate's sources may read while they are compiled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from extension_requests import files, inline

from dice.kernels.builder.flags import FlagForbidden
from dice.kernels.builder.includes import check_includes
from dice.kernels.builder.toolchain import Toolchain


@pytest.mark.parametrize(
    "line",
    [
        "#include <torch/extension.h>",
        "  #  include  <cuda_runtime.h>",
        '#include "beside.h"',
        '#include "below/beside.h"',
        "#include </usr/include/stdio.h>",
        "#include_next <math.h>",
        "#include <vector> // of everything",
        '// "/etc/passwd" is a file',
        'const char* text = "/etc/passwd";',
    ],
)
def test_the_toolchain_and_what_lies_beside_may_be_read(cpu_toolchain: Toolchain, line: str) -> None:
    check_includes(inline(line, line), cpu_toolchain)


@pytest.mark.parametrize(
    "line",
    [
        '#include "/etc/passwd"',
        "#include </etc/passwd>",
        '#include "../other/secret.h"',
        '#include "below/../../secret.h"',
        '#include "/usr/include/../../etc/passwd"',
        '#inc\\\nlude "/etc/passwd"',
        '#include \\\r\n "/etc/passwd"',
        '%:include "/etc/passwd"',
        '??=include "/etc/passwd"',
        '#import "/etc/passwd"',
        '#include_next "/etc/passwd"',
        '#embed "/etc/passwd"',
        '#define SECRET "/etc/passwd"\n#include SECRET',
        'asm(".incbin \\"/etc/passwd\\"");',
        '#if __has_embed("/etc/passwd")\n#endif',
    ],
)
def test_other_files_may_not_be_read_from_any_source(cpu_toolchain: Toolchain, line: str) -> None:
    requests = [
        inline(line),
        inline(cuda=line),
        files({"a.cpp": line}),
        files({"a.cu": ""}, headers={"a.h": line}),
    ]
    for request in requests:
        with pytest.raises(FlagForbidden):
            check_includes(request, cpu_toolchain)


def test_include_folders_are_the_toolchains_or_its_own(cpu_toolchain: Toolchain, tmp_path: Path) -> None:
    torch = str(cpu_toolchain.torch_root / "include")
    for folder in ("/usr/local/cuda/include", torch, "mine/include"):
        check_includes(inline(cuda=None).model_copy(update={"extra_include_paths": (folder,)}), cpu_toolchain)
    link = tmp_path / "innocent"
    link.symlink_to("/etc")
    for folder in ("/etc", "/", str(tmp_path), str(link), "../other", os.path.expanduser("~")):
        with pytest.raises(FlagForbidden, match="include folder"):
            check_includes(inline(cuda=None).model_copy(update={"extra_include_paths": (folder,)}), cpu_toolchain)
