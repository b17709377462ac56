"""A server of the chat completions protocol for tests, from the standard library: it answers as it is told, and counts.

    python tests/servers/chat_server.py serve CHECKPOINT --served-model-name NAME --port 8000

is the same as a program, with the command line of `vllm serve`; the scale `rehearsal` starts it for vLLM.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """What one request gets."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    """JSON, or bytes as they are; None with status 200: `completion(...)`."""
    cut: int | None = None
    """Close the connection after so many bytes of the body; 0: before the status line."""
    after: threading.Event | None = None
    """Answer only when this is set."""


def completion(body: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A completion that follows from the request alone: one token for a word of the prompt, and seven more."""
    prompt = body["messages"][-1]["content"]
    name = hashlib.sha256(json.dumps([prompt, body.get("seed")]).encode()).hexdigest()[:12]
    text = f"Here it is.\n```python\nimport torch\n\nclass ModelNew(torch.nn.Module):\n    name = '{name}'\n```\n"
    prompt_tokens = len(prompt.split())
    message = {"role": "assistant", "content": text} | changes.pop("message", {})
    choice = {"index": 0, "finish_reason": changes.pop("finish_reason", "stop"), "message": message}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 7, "total_tokens": prompt_tokens + 7}
    whole = {"id": f"chat-{name}", "object": "chat.completion", "created": 1, "model": body["model"]}
    return whole | {"choices": [choice], "usage": usage} | changes


def identity(body: dict[str, Any]) -> str:
    """A text for one request body."""
    return json.dumps(body, sort_keys=True)


class ChatServer(ThreadingHTTPServer):
    """`behave(body, attempt)` says what the attempt (from 1) at a request gets."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(
        self,
        behave: Callable[[dict[str, Any], int], Reply] = lambda body, attempt: Reply(),
        models: tuple[str, ...] = (),
        address: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        super().__init__(address, _Handler)
        self.behave, self.models = behave, models
        self.attempts: Counter[str] = Counter()
        """Request -> how often it came."""
        self.answered: Counter[str] = Counter()
        """Request -> how often it got a whole answer."""
        self.keys: set[str | None] = set()
        """Authorization headers that came."""
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Base URL for clients."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ChatServer  # pyright: ignore[reportIncompatibleVariableOverride] - it is made by no other

    def do_GET(self) -> None:
        self._send(Reply(body={"object": "list", "data": [{"id": m, "object": "model"} for m in self.server.models]}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name, server = identity(body), self.server
        with server.lock:
            server.attempts[name] += 1
            server.keys.add(self.headers["Authorization"])
            attempt = server.attempts[name]
        reply = server.behave(body, attempt)
        if reply.after is not None:
            reply.after.wait()
        if reply.status == 200 and reply.body is None:
            reply.body = completion(body)
        if reply.status == 200 and reply.cut is None:
            with server.lock:
                server.answered[name] += 1
        self._send(reply)

    def _send(self, reply: Reply) -> None:
        data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        if reply.cut != 0:
            self.send_response(reply.status)
            headers = {"Content-Length": str(len(data)), "Content-Type": "application/json"} | reply.headers
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data if reply.cut is None else data[: reply.cut])
        if reply.cut is not None:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def serving(behave: Callable[[dict[str, Any], int], Reply] | None = None) -> Iterator[ChatServer]:
    """A server in this process, in threads of its own."""
    server = ChatServer(behave) if behave else ChatServer()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def main() -> None:
    """The command line of `vllm serve`, as far as it is used."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", action="version", version="a server of the tests")
    parser.add_argument("serve", choices=["serve"])
    parser.add_argument("checkpoint")
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    args, _ = parser.parse_known_args()
    ChatServer(models=(args.served_model_name,), address=(args.host, args.port)).serve_forever()


if __name__ == "__main__":
    main()
