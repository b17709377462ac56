"""`dice ask`: answers of a model behind a server, or recorded ones, as the generations of any other model.

    dice ask --prompts prompts.jsonl --answers answers.jsonl --out generations.jsonl --config server.yaml

Every answer is appended to `answers` before it counts, and what is there is never asked again: a killed run, a higher
budget, a file of generations that was deleted cost nothing twice. Without a server, `answers` must have them all.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field
from tqdm import tqdm

from dice.config import add_options, config_from, stage_config, to_spec
from dice.errors import DiceError
from dice.evaluation.generation import Generation, sample_seed, split_thought
from dice.evaluation.prompts.stage import PromptRow
from dice.jsonl import Journal, read_jsonl, write_jsonl
from dice.kernels.api import extract_code
from dice.locks import only_holder
from dice.manifest import Stopwatch, weights_sha256, write_manifest
from dice.servers.answers import Answer, Question, check_model, read_answers, recorded
from dice.servers.config import ServerConfig
from dice.servers.ledger import Ledger


@stage_config
class AskConfig:
    """What `dice ask` reads, whom it asks, and what it writes."""

    prompts: str
    """prompts.jsonl of `dice prompts --chat plain`: the server adds its own chat markup."""
    answers: str
    """File of recorded answers: what is there is taken, and new ones are appended."""
    out: str
    """generations.jsonl to write."""
    server: ServerConfig | None = None
    """Where missing answers come from; None: none may be missing."""
    models: tuple[str, ...] = ()
    """Names under which the server may give its model; empty: any."""
    samples: int = Field(default=1, ge=1)
    """Answers per prompt."""
    seed: int = 0
    """Every sample's seed follows from this, the problem and the sample's number."""
    max_new_tokens: int = Field(default=4096, ge=1)
    """Longest answer in tokens, reasoning included."""


@dataclass(frozen=True)
class Asked:
    """A question as it is sent."""

    question: Question
    body: dict[str, Any]
    identity: str

    @property
    def prompt(self) -> str:
        """Its text."""
        return self.question.prompt.prompt


def ask(config: AskConfig) -> list[Generation]:
    """Run the stage; returns the rows in the order of the prompts, whatever the order in which answers came.

    Raises DiceError where an answer is missing, refused, or not what it should be, HarnessError where the server fails.
    """
    watch = Stopwatch()
    prompts = list(read_jsonl(config.prompts, PromptRow))
    if not prompts or len({row.id for row in prompts}) < len(prompts):
        raise DiceError(f"{config.prompts}: {'a problem occurs twice' if prompts else 'no prompts'}.")
    questions = [
        Question(row, sample, sample_seed(config.seed, row.id, sample))
        for row in prompts
        for sample in range(config.samples)
    ]
    extra: dict[str, Any] = {}
    if config.server is None:
        found = recorded(config.answers, questions, config.models)
    else:
        path = Path(config.answers)
        taken = f"{path}: another dice ask works on it; wait for it, or end it."
        with only_holder(path.with_name(f".{path.name}.lock"), taken):
            found, extra = _answered(config, config.server, questions)
    rows = [_row(question, found[question.key]) for question in questions]
    write_jsonl(config.out, rows)
    facts = _facts([found[question.key] for question in questions]) | extra
    same: dict[str, Any] = {"stage": "ask", "spec": to_spec(config), "watch": watch, "seeds": [config.seed]}
    if config.server is not None:
        write_manifest(config.answers, inputs=[config.prompts], extra=facts, **same)
    write_manifest(config.out, inputs=[config.prompts, config.answers], extra=facts, **same)
    return rows


def _answered(
    config: AskConfig, server: ServerConfig, questions: list[Question]
) -> tuple[dict[tuple[str, int], Answer], dict[str, Any]]:
    """Every question's answer, from the file or from the server, and facts for the manifest."""
    weights = weights_sha256(server.local.checkpoint) if server.local else None
    asked: list[Asked] = []
    for question in questions:
        body = question.body(server, config.max_new_tokens)
        asked.append(Asked(question, body, question.identity(body, weights)))
    with Journal(config.answers) as journal:
        before = read_answers(config.answers)
        ledger = Ledger(server.prices, server.budget, config.max_new_tokens)
        ledger.enter(before)
        kept = {answer.request: answer for answer in reversed(before)}  # the first of two
        missing = [one for one in asked if one.identity not in kept]
        for one in asked:
            if one.identity in kept:
                check_model(kept[one.identity], config.models)

        def keep(answer: Answer) -> None:
            journal.append(answer)  # it is paid for, whatever is wrong with it
            kept[answer.request] = answer
            ledger.enter([answer])
            check_model(answer, config.models)

        retried = _ask_server(server, missing, len(asked), ledger, keep) if missing else 0
    facts = {"answers_resumed": len(asked) - len(missing), "retried": retried, "weights": weights}
    return {one.question.key: kept[one.identity] for one in asked}, facts


def _ask_server(
    server: ServerConfig, missing: list[Asked], total: int, ledger: Ledger, keep: Callable[[Answer], None]
) -> int:
    """Ask all of `missing`; returns how many attempts failed before one was answered."""
    from dice.servers.client import Client
    from dice.servers.local import running

    async def conversation(base_url: str) -> int:
        async with Client(server, base_url) as client:
            with tqdm(total=total, initial=total - len(missing), unit="answer", desc="ask", file=sys.stderr) as bar:

                def keep_and_show(answer: Answer) -> None:
                    keep(answer)
                    bar.set_postfix_str(f"{ledger.tokens:,} tokens, cost {ledger.cost:.4f}", refresh=False)
                    bar.update()

                await _converse(client.ask, server.concurrency, deque(missing), ledger, keep_and_show)
            return client.retried

    with contextlib.ExitStack() as stack:
        url = stack.enter_context(running(server.local, server.model)) if server.local else server.base_url
        assert url is not None  # ServerConfig has one of the two
        return asyncio.run(conversation(url))


async def _converse(
    ask_one: Callable[..., Any], concurrency: int, waiting: deque[Asked], ledger: Ledger, keep: Callable[[Answer], None]
) -> None:
    """Keep `concurrency` requests under way. After an error nothing new is sent, and what is under way is still kept."""
    under_way: dict[asyncio.Task[Answer], Asked] = {}
    error: DiceError | None = None
    while True:
        while waiting and error is None and len(under_way) < concurrency and ledger.reserve(waiting[0].prompt):
            one = waiting.popleft()
            under_way[asyncio.create_task(ask_one(one.question, one.body, one.identity))] = one
        if not under_way:
            break
        done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            ledger.release(under_way.pop(task).prompt)
            try:
                keep(task.result())
            except DiceError as reason:
                error = error or reason
    if error is not None:
        raise error
    if waiting:
        raise DiceError(
            f"{ledger.spent(waiting[0].prompt)}; {len(waiting)} answers are missing. "
            "Raise server.budget and run it again: what is there is kept."
        )


def _row(question: Question, answer: Answer) -> Generation:
    thought, text = (answer.thought, answer.text) if answer.thought is not None else split_thought(answer.text)
    return Generation(
        problem_id=answer.problem_id,
        sample=answer.sample,
        seed=question.seed,
        prompt_sha256=question.prompt.prompt_sha256,
        text=text,
        thought=thought,
        code=extract_code(text).code if question.prompt.task == "end_to_end" else None,
        n_tokens=answer.completion_tokens,
        n_forwards=None,
        seconds=answer.seconds,
        finish_reason=answer.finish_reason,
        order=[],
    )


def _facts(answers: list[Answer]) -> dict[str, Any]:
    """What the manifest says about the answers; sums leave out what the server did not say."""

    def total(name: str) -> Any:
        known = [value for answer in answers if (value := getattr(answer, name)) is not None]
        return sum(known) if known else None

    return {
        "answers": len(answers),
        "models": sorted({answer.model for answer in answers}),
        "first": min(answer.date.isoformat() for answer in answers),
        "last": max(answer.date.isoformat() for answer in answers),
        "prompts_unknown": sum(answer.prompt_sha256 is None for answer in answers),
        "refused": sum(answer.finish_reason == "refused" for answer in answers),
        "cut_off": sum(answer.finish_reason == "length" for answer in answers),
        "prompt_tokens": total("prompt_tokens"),
        "completion_tokens": total("completion_tokens"),
        "reasoning_tokens": total("reasoning_tokens"),
        "cost": total("cost"),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice ask`."""
    add_options(parser, AskConfig, "prompts", "answers", "out", "samples", "seed", "max_new_tokens")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice ask`."""
    config = config_from(args, AskConfig)
    rows = ask(config)
    print(f"{len(rows)} answers written to {config.out}: {sum(row.code is not None for row in rows)} with code")
    return 0
