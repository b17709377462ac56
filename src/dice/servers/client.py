"""A client of the chat completions protocol: one question, one answer, by the package `openai`.

The package sends a request again after 408, 409, 429, 5xx and cut connections, with growing waits, and heeds Retry-After.
What it gives up on ends the run in one sentence. The key is in no sentence: no server's words about a refused key are
repeated, and every other text from outside is searched for it.
"""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime
from typing import Any, NoReturn

import openai
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from openai.types.chat import ChatCompletion

from dice.errors import DiceError, HarnessError
from dice.evaluation.generation import split_thought
from dice.servers.answers import Answer, Question
from dice.servers.config import ServerConfig
from dice.servers.ledger import money

_TOO_LONG = re.compile(
    r"context.?length|maximum context|exceeds the maximum number of tokens|(prompt|input) is too long|string_above_max",
    re.IGNORECASE,
)
"""How servers say that a prompt and its answer do not fit the model."""
_NO_KEY = "none"


def key_of(server: ServerConfig) -> str:
    """The key from the environment. Raises DiceError where there is none, or one that no request can carry."""
    if server.key is None:
        return _NO_KEY
    key = os.environ.get(server.key, "").strip()
    if not key:
        raise DiceError(f"the environment variable {server.key} is not set; it has the key of {server.base_url}.")
    if not re.fullmatch(r"[!-~]+", key):
        raise DiceError(f"the environment variable {server.key} holds white space, or characters that no key has.")
    return key


class Client:
    """Asks one server. Use it as an asynchronous context manager."""

    def __init__(self, server: ServerConfig, base_url: str) -> None:
        """Raises DiceError where the key is not in the environment."""
        self._server, self._url, self._key = server, base_url, key_of(server)
        local = server.local is not None
        self._client = AsyncOpenAI(
            api_key=self._key,
            base_url=base_url,
            max_retries=server.tries - 1,
            timeout=server.timeout_s,
            # no proxy between this machine and itself
            http_client=DefaultAsyncHttpxClient(trust_env=False) if local else None,
        )
        self.retried = 0
        """Attempts that were not answered, among those of answered requests."""

    async def __aenter__(self) -> Client:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def ask(self, question: Question, body: dict[str, Any], identity: str) -> Answer:
        """Send `body`. Raises DiceError where the server refuses all such requests, HarnessError where it is not there."""
        began = time.monotonic()
        rest = {name: value for name, value in body.items() if name not in ("model", "messages")}
        known: dict[str, Any] = {"problem_id": question.prompt.id, "sample": question.sample, "request": identity}
        known |= {"prompt_sha256": question.prompt.prompt_sha256}
        try:
            raw = await self._client.chat.completions.with_raw_response.create(
                model=body["model"], messages=body["messages"], extra_body=rest
            )
            self.retried += raw.retries_taken
            response = raw.parse()
        except openai.APIStatusError as error:
            if error.status_code not in (400, 413, 422) or not _TOO_LONG.search(str(error)):
                self._give_up(error)
            refusal: dict[str, Any] = {"text": "", "finish_reason": "refused", "note": self._quoted(str(error))}
            return Answer(**known, **refusal, model=self._server.model, date=datetime.now(UTC))
        except openai.APITimeoutError:
            raise HarnessError(
                f"{self._url}: silent for {self._server.timeout_s:g} s, {self._server.tries} times; "
                "raise server.timeout_s, or run it again."
            ) from None
        except openai.APIConnectionError as error:
            reason = self._quoted(str(error.__cause__ or error))
            raise HarnessError(
                f"{self._url}: no connection in {self._server.tries} tries ({reason}); run it again when the server is there."
            ) from None
        except (openai.OpenAIError, ValueError) as error:
            raise self._no_completion(self._quoted(str(error))) from None
        seconds = round(time.monotonic() - began, 4)
        return self._answer(response, known | {"seconds": seconds, "date": datetime.now(UTC)})

    def _answer(self, response: ChatCompletion, known: dict[str, Any]) -> Answer:
        if not isinstance(response, ChatCompletion) or not response.choices:
            raise self._no_completion("it has no choices")
        choice, usage = response.choices[0], response.usage
        extra = (choice.message.model_extra or {}) if choice.message else {}
        text = (choice.message.content if choice.message else None) or ""
        thought = extra.get("reasoning") or extra.get("reasoning_content")
        if not isinstance(thought, str):
            thought, text = split_thought(text)
        known["model"] = response.model or self._server.model
        if usage is not None:
            # reasoning is part of completion_tokens for most servers, and of total_tokens alone for some
            completion = max(usage.completion_tokens, (usage.total_tokens or 0) - usage.prompt_tokens)
            details = usage.completion_tokens_details
            known |= {"prompt_tokens": usage.prompt_tokens, "completion_tokens": completion}
            known |= {"reasoning_tokens": details.reasoning_tokens if details else None}
            known |= {"cost": money(self._server.prices, usage.prompt_tokens, completion)}
        if choice.finish_reason not in ("stop", "length"):
            known |= {"note": f"finish_reason {choice.finish_reason}"}
        finish = choice.finish_reason if choice.finish_reason in ("stop", "length") else "refused"
        kept_thought = None if thought is None else self._hide(thought)
        return Answer(**known, text=self._hide(text), thought=kept_thought, finish_reason=finish)

    def _give_up(self, error: openai.APIStatusError) -> NoReturn:
        """Raises what an answer with this status means."""
        status, message = error.status_code, self._quoted(str(error))
        match status:
            case 401:
                raise DiceError(f"{self._url} refuses the key in {self._server.key} (401).") from None
            case 404:
                raise DiceError(
                    f"{self._url}: no model '{self._server.model}' there, or no such address (404)."
                ) from None
            case 429:
                wait = error.response.headers.get("retry-after")
                hint = f"it asks to wait {wait} s" if wait else message
                raise HarnessError(
                    f"{self._url}: the rate limit did not end in {self._server.tries} tries ({hint}); "
                    "run it again later, or with a lower server.concurrency."
                ) from None
            case 408 | 409:
                pass
            case _ if status < 500:
                raise DiceError(f"{self._url} refuses the request ({status}): {message}") from None
        raise HarnessError(
            f"{self._url}: error {status} in {self._server.tries} tries ({message}); run it again later."
        ) from None

    def _no_completion(self, reason: str) -> HarnessError:
        return HarnessError(
            f"{self._url}: what it answers is no chat completion ({reason}); does the address end in /v1?"
        )

    def _hide(self, text: str) -> str:
        return text if self._key == _NO_KEY else text.replace(self._key, "[key]")

    def _quoted(self, text: str) -> str:
        """What a server said, as one line of at most 300 characters, without the key."""
        return " ".join(self._hide(text).split())[:300]
