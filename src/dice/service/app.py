"""The service's routes: HTTP and JSON around a dispatcher. OpenAPI page: `/docs`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from fastapi.security import HTTPBearer
from pydantic import Field

import dice
from dice.errors import HarnessError
from dice.jsonl import valid_text
from dice.service.adapters import kernelgym, slime
from dice.service.dispatcher import Dispatcher, Refused
from dice.service.gate import Gate
from dice.service.schema import LONGEST_WAIT_S, Health, Info, JobView, JobViews, Submission, Wait
from dice.service.tokens import Tokens

HEARTBEAT_S = 10.0
"""A stream of results sends an empty line after this long, so that a dead connection is noticed."""


def make_app(
    dispatcher: Dispatcher, tokens: Tokens, lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]]
) -> FastAPI:
    """The application. `lifespan` starts the dispatcher, and stops it."""
    config = dispatcher.config
    app = FastAPI(
        title="DICE kernel verifier",
        version=dice.__version__,
        description="Verdicts on CUDA kernels. A candidate is accepted once: the same again joins the job that there is.",
        lifespan=lifespan,
        dependencies=[Depends(HTTPBearer(auto_error=False, description="A client's token; `Gate` checks it."))],
    )
    app.add_middleware(Gate, tokens=tokens, most_bytes=int(config.request_mib * 2**20))
    app.state.dispatcher = dispatcher

    def refusal(code: int, sentence: str) -> JSONResponse:
        dispatcher.metrics.refused.labels(str(code)).inc()
        headers = {"Retry-After": str(config.retry_after_s)} if code in (429, 503) else None
        return JSONResponse({"detail": valid_text(sentence)}, code, headers)

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        return refusal(error.code, str(error))

    @app.exception_handler(HarnessError)
    async def broken(request: Request, error: HarnessError) -> JSONResponse:
        return refusal(503, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]  # without its input, which may be megabytes
        return refusal(422, f"'{'.'.join(map(str, first['loc']))}': {first['msg']}.")

    @app.post("/v1/jobs", status_code=202, tags=["jobs"])
    async def submit(submission: Submission, request: Request) -> JobViews:
        """Submit candidates. The answer has one job for each, in their order; some may be done already."""
        return JobViews(jobs=dispatcher.submit(request.state.client, submission))

    @app.get("/v1/jobs/{id}", tags=["jobs"])
    async def job(id: str, wait_s: Annotated[float, Field(ge=0, le=LONGEST_WAIT_S)] = 0.0) -> JobView:
        """One job; with `wait_s`, once it has ended or that many seconds have gone."""
        dispatcher.view(id)
        await dispatcher.wait([id], wait_s)
        return dispatcher.view(id)

    @app.delete("/v1/jobs/{id}", tags=["jobs"])
    async def cancel(id: str, request: Request) -> JobView:
        """Cancel a job. One that runs, or that another client wants too, goes on."""
        return dispatcher.cancel(request.state.client, id)

    @app.post("/v1/jobs/wait", tags=["jobs"])
    async def wait(wait: Wait) -> JobViews:
        """Those of the jobs that have ended; when none has, wait for the first."""
        return await dispatcher.wait(wait.ids, wait.wait_s)

    @app.post("/v1/jobs/stream", tags=["jobs"], response_class=StreamingResponse)
    async def stream(wait: Wait) -> StreamingResponse:
        """JSON lines: each job once it has ended, as they end. An empty line now and then says: still there.

        Ids that are not known here get no line, and `wait_s` is not read."""

        async def lines() -> AsyncIterator[str]:
            left = dict.fromkeys(wait.ids)
            while left:
                found = await dispatcher.wait(list(left), HEARTBEAT_S)
                for view in found.jobs:
                    yield view.model_dump_json() + "\n"
                for id in [*(view.id for view in found.jobs), *found.unknown]:
                    del left[id]
                if not found.jobs:
                    yield "\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    @app.get("/v1/info", tags=["service"])
    async def info() -> Info:
        """How this service judges."""
        return Info(
            version=dice.__version__,
            identity=dispatcher.journal.identity,
            backend=config.backend,
            judging=config.judging,
            limits=config.limits,
            isolation=dispatcher.isolation,
            problems=dispatcher.n_problems,
            client_problems=config.client_problems,
        )

    @app.get("/health", tags=["service"], response_model=Health)
    async def health() -> JSONResponse:
        """200 when the pool is open, else 503; no token needed."""
        waiting, running = dispatcher.counts()
        found = Health(status="ready" if dispatcher.ready else "starting", waiting=waiting, running=running)
        return JSONResponse(found.model_dump(), 200 if dispatcher.ready else 503)

    @app.get("/metrics", tags=["service"], response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        """Counters for Prometheus."""
        waiting, running = dispatcher.counts()
        dispatcher.metrics.waiting.set(waiting)
        dispatcher.metrics.running.set(running)
        return PlainTextResponse(dispatcher.metrics.text())

    for adapter in (kernelgym, slime):
        app.include_router(adapter.router)
    return app
