"""A task set of `verifiers` (0.4, its `v1`): each problem is a task, its reward the verdict of a service.

`verifiers` finds task sets as top modules. So put a file `dice_kernels.py` where Python finds it, with

    from dice.service.adapters.verifiers import KernelTaskset
    __all__ = ["KernelTaskset"]

and run `eval dice-kernels --env.taskset.task.url http://HOST:8642 --env.taskset.problems mini`. The token comes from
`DICE_SERVICE_TOKEN`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports] - installed where it is used

from dice.kernels.api import load_problems
from dice.service.adapters.reward import reward
from dice.service.client import shared_client
from dice.service.schema import Candidate

PROMPT = """Write a PyTorch module `ModelNew` that computes what `Model` computes, with CUDA kernels of your own built by
`torch.utils.cpp_extension.load_inline`. Answer with one Python code block.

```python
{code}
```"""


class KernelTaskConfig(vf.TaskConfig):
    """Where to verify."""

    url: str = "http://127.0.0.1:8642"


class KernelConfig(vf.TasksetConfig):
    """Which problems, named as in `dice verify`, at which back end's sizes."""

    task: KernelTaskConfig = KernelTaskConfig()
    problems: str = "mini"
    backend: Literal["cuda", "cpu"] = "cuda"


class KernelTask(vf.Task[vf.TaskData, vf.State, KernelTaskConfig]):
    """Write one kernel."""

    @vf.reward
    async def correct(self, trace: vf.Trace) -> float:
        """1 for a correct kernel. Raises HarnessError where the machine failed: the rollout then has no reward."""
        candidate = Candidate(problem_id=self.data.name or "", text=trace.last_reply)
        return reward(await shared_client(self.config.url).verify(candidate))


class KernelTaskset(vf.Taskset[KernelTask, KernelConfig]):
    """One task for each problem."""

    def load(self) -> Iterable[KernelTask]:
        """The tasks, in the problems' order."""
        for problem in load_problems(self.config.problems, self.config.backend):
            data = vf.TaskData(name=problem.id, prompt=PROMPT.format(code=problem.code.strip()))
            yield KernelTask(data, self.config.task)
