"""Why an answer failed: the three groups of the paper's Figure 6 (A.7.3), and the classes inside them.

The paper names the groups and not their members. Ours follow from the verdict alone, so anyone can recount them:

generation failure      no usable answer: no code, no custom kernel, or a deceptive answer
execution failure       it does not build, load or run to its end
functional correctness  it runs, and the output is wrong in value, shape or type
"""

from __future__ import annotations

from typing import Literal

from dice.kernels.api import Status, Verdict

Group = Literal["generation failure", "execution failure", "functional correctness", "correct", "not judged"]

GROUP_OF: dict[Status, Group] = {
    "correct": "correct",
    "no_code": "generation failure",
    "deceptive": "generation failure",
    "compile_error": "execution failure",
    "refused_flag": "execution failure",
    "import_error": "execution failure",
    "runtime_error": "execution failure",
    "timeout": "execution failure",
    "out_of_memory": "execution failure",
    "wrong_value": "functional correctness",
    "wrong_shape": "functional correctness",
    "wrong_dtype": "functional correctness",
    "unsupported_on_cpu": "not judged",
    "host_error": "not judged",
}


def failure_class(verdict: Verdict) -> str:
    """`group/class`: the status, and for a deceptive answer the first fatal finding's name."""
    detail: str = verdict.status
    if verdict.status == "deceptive":
        fatal = [finding.name for finding in verdict.deception if finding.fatal.get(verdict.protocol)]
        detail = fatal[0] if fatal else "deceptive"
    return f"{GROUP_OF[verdict.status]}/{detail}"
