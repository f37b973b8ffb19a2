"""Origin: a server of files on this machine, which tells what it was asked for."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Origin:
    """A running server: `host` with its port, and the paths that were asked for so far."""

    def __init__(self, port: int) -> None:
        self.host = f"localhost:{port}"
        self.asked: list[str] = []

    def url(self, path: str) -> str:
        """Return the URL of a file."""
        return f"http://{self.host}{path}"


@contextmanager
def origin(files: Mapping[str, bytes]) -> Iterator[Origin]:
    """Serve files by their paths, from a thread."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(self.path)
            data = files.get(self.path)
            self.send_response(200 if data is not None else 404)
            self.send_header("content-length", str(len(data or b"")))
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    found = Origin(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
