"""A tiny real HTTP server that plays a node's admin API, on a free loopback port."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, TypeAlias

Script: TypeAlias = Callable[["Asked"], tuple[int, Any]]
# `smg-admin` with some words: its exit code, stdout and stderr.
RunAdmin: TypeAlias = Callable[..., tuple[int, str, str]]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came over the wire; `body` is decoded JSON or None."""

    method: str
    path: str
    authorization: str
    body: Any


@dataclass(slots=True)
class AdminApi:
    """The server's address, and everything it was asked."""

    url: str
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def admin_api(script: Script) -> Iterator[AdminApi]:
    """Answer every request with what `script` says: a status, and JSON or raw bytes."""
    api = AdminApi("")

    class Answering(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            content = self.rfile.read(length)
            asked = Asked(
                self.command,
                self.path,
                self.headers.get("authorization", ""),
                json.loads(content) if content else None,
            )
            api.asked.append(asked)
            status, body = script(asked)
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer  # noqa: N815 (the library's names)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the library's name)
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
