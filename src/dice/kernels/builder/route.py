"""What the routes of a fast build have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dice.kernels.builder.compiler import Meter, ToolLimits
from dice.kernels.builder.precompiled import Precompiled
from dice.kernels.builder.preprocessor import Preprocessor
from dice.kernels.records.extension import ExtensionRequest


@dataclass
class Route:
    """One candidate's build in the folder `work`. `module`: the name compiled into the object."""

    request: ExtensionRequest
    module: str
    precompiled: Precompiled
    work: Path
    meter: Meter
    limits: ToolLimits
    deadline: float
    """Of `time.monotonic()`."""
    fallbacks: list[str] = field(default_factory=list)
    """Why each way that was tried first did not do."""

    @property
    def preprocess(self) -> Preprocessor:
        """The compiler's preprocessor, for texts of this build."""
        return Preprocessor(self.meter, self.work, self.deadline)
