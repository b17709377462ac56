"""Middleware in front of the service's routes: it checks tokens and limits the size of requests."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dice.service.tokens import Tokens

OPEN = ("/health", "/openapi.json", "/docs", "/docs/oauth2-redirect")
"""Paths that need no token."""


class Gate:
    """ASGI middleware: 401 without a client's token, 413 for a large request, before it is read.

    Behind it `request.state.client` is the client's name; without tokens, its address.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens, most_bytes: int) -> None:
        self._app, self._tokens, self._most_bytes = app, tokens, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, left = Headers(scope=scope), self._most_bytes
        client = (scope.get("client") or ("local",))[0]
        if self._tokens and scope["path"] not in OPEN:
            client = self._tokens.client(headers.get("authorization", ""))
            if client is None:
                challenge = {"WWW-Authenticate": "Bearer"}
                await JSONResponse({"detail": "no valid token."}, 401, challenge)(scope, receive, send)
                return
        scope.setdefault("state", {})["client"] = client
        refusal = HTTPException(413, f"a request may have {self._most_bytes} bytes; send less at once.")

        async def limited() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise refusal  # where the route reads its body
            return message

        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._most_bytes:
            await JSONResponse({"detail": refusal.detail}, 413)(scope, receive, send)
            return
        await self._app(scope, limited, send)
