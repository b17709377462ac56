"""Settings of a server: where it is, how it samples, what may be spent there."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field

from dice.config import stage_config


@stage_config
class Prices:
    """Money for a million tokens, in the currency in which the budget is given, too."""

    prompt: float = Field(ge=0)
    """Of the prompt."""
    completion: float = Field(ge=0)
    """Of the answer, reasoning included."""


@stage_config
class Budget:
    """What the answers of one file may cost in all, whatever the number of runs. It changes no answer, so it can be
    raised and the run goes on."""

    money: float | None = Field(default=None, ge=0)
    """In the currency of `prices`, which it needs; None: no limit."""
    tokens: int | None = Field(default=None, ge=0)
    """Tokens of prompts and answers; None: no limit."""


@stage_config
class LocalServer:
    """A vLLM that the stage starts for itself, and stops."""

    checkpoint: str
    """Folder with weights and tokenizer."""
    command: Annotated[tuple[str, ...], Field(min_length=1)] = ("vllm",)
    """How vLLM is started; a path where it lives in an environment of its own."""
    arguments: tuple[str, ...] = ()
    """More arguments of `vllm serve`: `--max-model-len 8192`."""


@stage_config
class ServerConfig:
    """An OpenAI-compatible server (`/chat/completions`), and what every request to it says."""

    base_url: str | None = None
    """Address, with the version: `https://api.example.com/v1`; None: the one of `local`."""
    local: LocalServer | None = None
    """The server that the stage starts for itself."""
    model: str
    """Name of the model in requests."""
    key: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")] | None = None
    """NAME of the environment variable that holds the key; the key itself is written nowhere. None: none is needed."""
    temperature: float | None = Field(default=None, ge=0)
    """None: the server's default, which is the checkpoint's own for vLLM."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """None: as above."""
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Name of the field for the longest answer; OpenAI's newer models take only the second."""
    sends_seed: bool = True
    """Send each sample's seed (31 bits of it); some servers refuse the field, others ignore it."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """More fields of the request: `top_k`, `repetition_penalty`, `chat_template_kwargs`, `reasoning_effort`."""
    concurrency: int = Field(default=8, ge=1)
    """Requests at a time."""
    tries: int = Field(default=12, ge=1)
    """Attempts at one request: after 429, 5xx, a cut or silent connection it is sent again. The waits grow to 8 seconds;
    a server's Retry-After counts up to 120 seconds, and a longer one ends the run."""
    timeout_s: float = Field(default=3600.0, gt=0)
    """Longest silence of the server. Answers are not streamed: a long one is silent until it is complete."""
    prices: Prices | None = None
    """None: the costs are not counted."""
    budget: Budget = Budget()
    """What may be spent."""

    def __post_init__(self) -> None:
        if (self.base_url is None) == (self.local is None):
            raise ValueError("give either base_url or local")
        if self.base_url is not None:
            parts = urlsplit(self.base_url)
            if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
                raise ValueError("base_url must be http(s)://host/path, with no user, key or query in it")
        if taken := sorted(set(self.extra) & {"model", "messages", "n", "stream", "seed", self.limit}):
            raise ValueError(f"extra cannot give {', '.join(taken)}")
        if self.budget.money is not None and self.prices is None:
            raise ValueError("budget.money needs prices")
