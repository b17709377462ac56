# problem: relu
# mechanism: dataclass, typing, enum, properties and an abstract base class
# near: frame_access
# status: correct
# include: relu
import abc
import dataclasses
import enum
from typing import Final


class Mode(enum.Enum):
    EXACT = "exact"


@dataclasses.dataclass(frozen=True)
class Plan:
    mode: Mode = Mode.EXACT
    threads: int = 256


class Kernel(abc.ABC):
    @abc.abstractmethod
    def __call__(self, x):
        pass


class ReluKernel(Kernel):
    plan: Final = Plan()

    def __call__(self, x):
        return ext.relu(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = ReluKernel()

    @property
    def plan(self):
        return self.kernel.plan

    def forward(self, x):
        return self.kernel(x)
