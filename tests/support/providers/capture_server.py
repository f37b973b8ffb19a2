"""Capture server: takes any request on the loopback, keeps it, and refuses it, so that a client says only what it sends."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import unquote

REFUSAL = json.dumps(
    {
        "error": {
            "type": "invalid_request_error",
            "message": "captured",
            "code": 400,
            "status": "INVALID_ARGUMENT",
        }
    }
).encode()


class Captured(NamedTuple):
    """One request; names of headers are in lower case."""

    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def place(self) -> str:
        """Path and query with their escapes undone, as clients differ in what they escape."""
        return unquote(self.target)

    @property
    def fields(self) -> Any:
        return json.loads(self.body)


class CaptureServer:
    """Where it listens, and the last request."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.last: Captured | None = None

    def taken(self) -> Captured:
        """Return the last request, and forget it."""
        taken, self.last = self.last, None
        assert taken is not None, "the client sent nothing"
        return taken


@contextmanager
def capture_server() -> Iterator[CaptureServer]:
    """A server on a port of its own, in a thread of its own."""

    class Capture(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self._body()
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.last = Captured(self.path, headers, body)
            self.send_response(400)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(REFUSAL)))
            self.end_headers()
            self.wfile.write(REFUSAL)

        def _body(self) -> bytes:
            if self.headers.get("transfer-encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("content-length", 0)))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def log_message(self, *_: Any) -> None:
            """A test reads what was sent, not a log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Capture) as listening:
        server = CaptureServer(listening.server_port)
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()
