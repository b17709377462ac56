"""Who may use a service: bearer tokens from the environment, each with the name of a client.

`DICE_SERVICE_TOKENS` holds `name=token`, several with commas between; a token alone is the client `client`. They are
kept as hashes, compared in constant time, and never written anywhere. HTTP's Basic scheme is understood as well (any
user, the token as password), for callers that can give a URL only: `http://user:TOKEN@host:8642`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from dice.errors import DiceError

VARIABLE = "DICE_SERVICE_TOKENS"
SHORTEST = 16


class Tokens:
    """The tokens of all clients; without any, everybody may use the service."""

    def __init__(self, text: str = "") -> None:
        """Raises DiceError, without the token, for one that is too short or given twice."""
        self._clients: dict[bytes, str] = {}
        for number, part in enumerate(filter(None, (part.strip() for part in text.split(","))), 1):
            name, _, token = (piece.strip() for piece in part.partition("="))
            if not token.strip("="):  # no name before it: `=` at the end of a token is base64's padding
                name, token = "client", part
            if len(token) < SHORTEST or not token.isascii():
                raise DiceError(f"{VARIABLE}: token {number} needs at least {SHORTEST} ASCII characters.")
            digest = _digest(token)
            if digest in self._clients:
                raise DiceError(f"{VARIABLE}: token {number} was given before.")
            self._clients[digest] = name

    def __bool__(self) -> bool:
        return bool(self._clients)

    def client(self, authorization: str) -> str | None:
        """The client whom an `Authorization` header names; None: nobody."""
        scheme, _, value = authorization.strip().partition(" ")
        token = value.strip()
        if scheme.lower() == "basic":
            try:
                token = base64.b64decode(token, validate=True).decode("ascii").partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return None
        elif scheme.lower() != "bearer":
            return None
        given = _digest(token)
        found = [name for digest, name in self._clients.items() if hmac.compare_digest(digest, given)]
        return found[0] if found else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
