"""smg-admin at a node's UNIX socket for operators."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from support.http.admin_api import RunAdmin


class _Answering(BaseHTTPRequestHandler):
    """Answers as a node without workers."""

    def do_GET(self) -> None:
        body = json.dumps({"workers": [], "stats": {}, "asked": self.path}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "a socket"

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def answering(path: Path) -> Iterator[None]:
    with socketserver.ThreadingUnixStreamServer(str(path), _Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("spelled", ["unix:{}", "unix://{}"])
def test_a_node_is_asked_by_its_socket(run: RunAdmin, tmp_path: Path, spelled: str) -> None:
    path = tmp_path / "admin.sock"
    with answering(path):
        code, out, err = run("--url", spelled.format(path), "--json", "workers", "list")
    assert (code, err) == (0, "")
    assert json.loads(out) == []


def test_a_socket_without_a_node_is_one_line(run: RunAdmin, tmp_path: Path) -> None:
    url = f"unix:{tmp_path / 'none.sock'}"
    found = run("--url", url, "workers", "list")
    assert found == (1, "", f"smg-admin: no node answers at {url}; is smg-node running?\n")


@pytest.mark.parametrize("url", ["unix:", "unix:relative.sock", "unix://host/path"])
def test_what_names_no_socket_is_refused(run: RunAdmin, url: str) -> None:
    code, out, err = run("--url", url, "workers", "list")
    assert (code, out) == (1, "")
    assert "is not a socket such as unix:/run/smg/admin.sock" in err
