"""rocrate-validator without the network: contexts of RO-Crate come from a file. Run by the validator's own Python.

python offline_validator.py CONTEXT.jsonld validate ...
"""

from __future__ import annotations

import email.message
import io
import sys
import urllib.request
import urllib.response
from pathlib import Path

CONTEXT = Path(sys.argv.pop(1)).read_bytes().replace(b"https://bioschemas.org/terms/", b"https://bioschemas.org/")
"""The context of a later version with the two names that 1.1 has elsewhere."""
_open = urllib.request.OpenerDirector.open


def _answer(self, request, *rest, **named):
    url = getattr(request, "full_url", request)
    if not url.startswith("https://w3id.org/ro/crate/"):
        return _open(self, request, *rest, **named)
    headers = email.message.Message()
    headers["Content-Type"] = "application/ld+json"
    return urllib.response.addinfourl(io.BytesIO(CONTEXT), headers, url, 200)


def _respond(adapter, request, **named):
    """The same for `requests`."""
    import requests

    if not request.url.startswith("https://w3id.org/ro/crate/"):
        raise requests.ConnectionError(f"no network in this test: {request.url}", request=request)
    response = requests.Response()
    response.status_code, response.url, response.request = 200, request.url, request
    response.raw = io.BytesIO(CONTEXT)
    response.headers["Content-Type"] = "application/ld+json"
    return response


if __name__ == "__main__":
    from requests.adapters import HTTPAdapter
    from rocrate_validator.cli import cli  # pyright: ignore[reportMissingImports]

    urllib.request.OpenerDirector.open = _answer  # pyright: ignore[reportAttributeAccessIssue]
    HTTPAdapter.send = _respond  # pyright: ignore[reportAttributeAccessIssue]
    cli()
