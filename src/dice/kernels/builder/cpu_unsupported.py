"""What of CUDA the CPU back end lacks, read from a compiler's messages."""

from __future__ import annotations

import re

UNKNOWN_PARAMETER = "declared void"
"""What g++ first says of a kernel one of whose parameters has an unknown type; the next error names the type."""
_STATED = re.compile(r"unsupported_on_cpu: ([^\n\"]+)")
_MISSING_HEADER = re.compile(r"fatal error: ([\w./-]+): No such file")
_TOOLKIT_HEADER = re.compile(
    r"^(cub|thrust|cuda|cute|cutlass|nv|cooperative_groups)/|^(cu(fft|rand|sparse|solver|file|Complex)|npp|nvml|nvrtc|nvjpeg|"
    r"mma|nccl|texture|surface|cuda_(pipeline|awbarrier|fp8|fp6|fp4|gl_interop))\w*\.h$|^(ATen|c10|torch)/.*(cuda|cudnn|CUDA)"
)
_UNKNOWN_NAME = re.compile(
    r"error: ‘?'?(?:struct |class |enum )?([\w:]+)[’'](?: was not declared| has not been declared| does not name a type| is not a member)"  # noqa: E501
)
_MEMBER_OF = re.compile(r"error: ['‘](\w+)['’] (?:is not a member of|has not been declared in) ['‘]([\w:]+)['’]")
_CUDA_NAME = re.compile(
    r"^(cuda[A-Z]\w+|cu[A-Z]\w+|CU[a-z]\w+|CU_[A-Z]\w+|cublas\w+|CUBLAS\w+|cudnn\w+|CUDNN\w+|"
    r"curand\w*|CURAND\w+|cusparse\w+|cusolver\w+|cufft\w+|nccl\w+|"
    r"__cvta_\w+|__is(Global|Shared|Constant|Local|GridConstant)|__nv_\w+|__viadd\w+|__vi(max|min|bmax|bmin)\w+|tex[123]D\w*|surf[123]D\w*|__cluster\w*|cub|thrust|nvcuda|wmma|cooperative_groups)$"
)
_NO_OVERLOAD = re.compile(
    r"error: no matching function for call to ['‘]((?:cub|thrust|nvcuda|cooperative_groups)::[^'’]*)"
)
_CUDA_NAMESPACE = re.compile(r"^(at::cuda|c10::cuda|cub|thrust|nvcuda|cooperative_groups|cuda)(::|$)")


def unsupported(output: str) -> str | None:
    """What of CUDA a failed g++ run missed, by its messages; None when the error is the candidate's own."""
    if match := _STATED.search(output):
        return match.group(1).strip()
    if (match := _MISSING_HEADER.search(output)) and _TOOLKIT_HEADER.search(match.group(1)):
        return f"<{match.group(1)}>"
    complaints = (line for line in output.splitlines() if "error:" in line)
    first = next((line for line in complaints if UNKNOWN_PARAMETER not in line), "")
    if (match := _MEMBER_OF.search(first)) and _CUDA_NAMESPACE.match(match.group(2)):
        return f"{match.group(2)}::{match.group(1)}"
    if match := _NO_OVERLOAD.search(first):
        return match.group(1)
    if (match := _UNKNOWN_NAME.search(first)) and _CUDA_NAME.match(match.group(1).split("::")[-1]):
        return match.group(1)
    return None
