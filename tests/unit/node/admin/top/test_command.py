"""`smg-admin top` as it is typed: for scripts, on a terminal, and while nodes go away."""

import asyncio
import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from smg_node.admin.client import AdminClient, AdminError
from smg_node.admin.top.poller import Poller
from smg_node.admin.top.snapshot import read_snapshot
from support.http.admin_api import RunAdmin
from support.http.http_node import node
from support.http.polled_cluster import ToldCluster, worker

_PATIENCE_S = 30.0


@dataclass
class ToldNode:
    """A node that answers what a test says, on a port of its own."""

    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def tell(self, cluster: ToldCluster) -> None:
        self.answers = {
            "/v1/cluster/metrics": (200, cluster.said()),
            "/workers": (200, {"workers": [worker("grpc://e1:1")]}),
            "/v1/cluster/limits": (200, {"limits": [], "uses": []}),
        }


@contextmanager
def listening(told: ToldNode) -> Iterator[ToldNode]:
    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            told.asked.append(path)
            status, said = told.answers.get(path, (404, {}))
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Say nothing of it."""

    server = ThreadingHTTPServer(("127.0.0.1", told.port), Answering)
    told.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reading(*urls: str) -> Poller:
    return Poller(AdminClient(urls[0], "", 5.0), urls)


def numbers(reader: Poller) -> str:
    return reader.look(workers=False, limits=False).node


def test_when_the_node_that_was_asked_dies_one_that_it_named_is_asked() -> None:
    cluster = ToldCluster("a", "b")
    with listening(ToldNode()) as second:
        with listening(ToldNode()) as first:
            told = dict(cluster.said())
            told["nodes"][1]["http"] = f"127.0.0.1:{second.port}"
            first.answers = {"/v1/cluster/metrics": (200, told)}
            second.answers = {"/v1/cluster/metrics": (200, {**told, "node": "b"})}
            reader = reading(first.url)
            assert numbers(reader) == "a"
        assert numbers(reader) == "b"
        assert reader.url == second.url
        assert numbers(reader) == "b", "it goes on with the one that answers"


def test_a_node_that_answers_operators_elsewhere_is_asked_there() -> None:
    cluster = ToldCluster("a", "b")
    with listening(ToldNode()) as public, listening(ToldNode()) as second:
        with listening(ToldNode()) as first:
            told = dict(cluster.said())
            told["nodes"][1] |= {
                "http": f"127.0.0.1:{public.port}",
                "admin": f"127.0.0.1:{second.port}",
            }
            first.answers = {"/v1/cluster/metrics": (200, told)}
            second.answers = {"/v1/cluster/metrics": (200, {**told, "node": "b"})}
            reader = reading(first.url)
            assert numbers(reader) == "a"
        assert numbers(reader) == "b"
    assert public.asked == []


def test_nodes_that_can_be_asked_on_their_own_machines_only_are_said() -> None:
    cluster = ToldCluster("a", "b", "c")
    with listening(ToldNode()) as public:
        with listening(ToldNode()) as first:
            told = dict(cluster.said())
            told["nodes"][1] |= {"http": f"127.0.0.1:{public.port}", "admin": "unix"}
            told["nodes"][2] |= {"http": "", "admin": ""}
            first.answers = {"/v1/cluster/metrics": (200, told)}
            reader = reading(first.url)
            assert numbers(reader) == "a"
        with pytest.raises(AdminError) as nobody:
            numbers(reader)
    assert "; b can be asked on their own machines only (http.admin_listen)" in str(nobody.value)
    assert public.asked == []


def test_an_address_of_another_machine_itself_is_not_taken_for_one_of_this() -> None:
    snapshot = read_snapshot(
        {
            "node": "a",
            "metrics": {},
            "nodes": [
                {"name": name, "state": "alive", "http": "", "admin": admin, "version": "1"}
                | {"silent": "", "at_s": 0, "ready": True, "draining": False, "reasons": []}
                | {"degraded": [], "rows": {}, "cut": 0}
                for name, admin in (("a", "10.0.0.1:7"), ("b", "127.0.0.1:7"), ("c", "10.0.0.3:7"))
            ],
        }
    )
    for url, tried in (
        ("https://10.0.0.1:7", ["https://10.0.0.1:7", "https://10.0.0.3:7"]),
        (
            "http://127.0.0.1:9/",
            ["http://127.0.0.1:9/", "http://10.0.0.1:7", "http://127.0.0.1:7", "http://10.0.0.3:7"],
        ),
    ):
        reader = reading(url)
        reader._answered(url, snapshot)
        assert list(reader._candidates()) == tried


def test_the_next_of_the_named_nodes_is_asked_where_the_first_is_away_broken_or_too_old() -> None:
    with (
        listening(ToldNode()) as broken,
        listening(ToldNode()) as old,
        listening(ToldNode()) as well,
    ):
        broken.answers = {"/v1/cluster/metrics": (503, {})}
        well.tell(ToldCluster("c"))
        reader = reading("http://127.0.0.1:1", broken.url, old.url, well.url)
        assert numbers(reader) == "c"
        assert (len(broken.asked), len(old.asked)) == (1, 1)


def test_a_refusal_is_not_asked_of_the_next_one() -> None:
    with listening(ToldNode()) as first, listening(ToldNode()) as second:
        first.answers = {"/v1/cluster/metrics": (401, {"error": {"message": "a key is needed"}})}
        second.tell(ToldCluster("b"))
        with pytest.raises(AdminError, match="a key is needed"):
            numbers(reading(first.url, second.url))
        assert second.asked == []


def test_where_nobody_answers_that_is_said_once() -> None:
    with pytest.raises(
        AdminError, match=r"no node answers at .*:1; is smg-node running\? \(and 1 more\)"
    ):
        numbers(reading("http://127.0.0.1:1", "http://127.0.0.1:2"))


def test_only_what_a_pane_shows_is_asked_for() -> None:
    with listening(ToldNode()) as told:
        told.tell(ToldCluster("a"))
        reader = reading(told.url)
        reader.look(workers=False, limits=False)
        reader.look(workers=True, limits=False)
        snapshot = reader.look(workers=False, limits=True)
    assert told.asked.count("/workers") == 1
    assert told.asked.count("/v1/cluster/limits") == 1
    assert (snapshot.workers, snapshot.limits) == (None, [])


async def test_scripts_get_one_object_of_a_real_node(run: RunAdmin) -> None:
    async with node() as served:
        where = f"http://127.0.0.1:{served.port}"
        code, out, err = await asyncio.to_thread(
            run, "--url", where, "top", "--once", "--json", "--interval", "0.2"
        )
    said = json.loads(out)
    assert (code, err) == (0, "")
    assert said["node"] == "node-a"
    assert {line["name"]: line["state"] for line in said["nodes"]}["node-a"] in (
        "ready",
        "not ready",
    )
    assert said["total"]["completion_tokens"] == 0
    assert (len(said["workers"]) > 0, said["limits"]) == (True, [])


async def test_without_a_terminal_every_pane_is_printed(run: RunAdmin) -> None:
    async with node() as served:
        where = f"http://127.0.0.1:{served.port}"
        code, out, _ = await asyncio.to_thread(run, "--url", where, "top", "--once", "-i", "0.2")
        one = await asyncio.to_thread(
            run, "--url", where, "top", "--once", "-i", "0.2", "--pane", "tenants"
        )
    assert code == 0
    heads = [line.split()[0] for line in out.splitlines() if re.match(r"[A-Z]+ ", line)]
    assert heads == ["TTFT", "NODE", "MODEL", "WORKER", "TENANT", "LIMIT"]
    assert "NODE" not in one[1]
    assert "TENANT" in one[1]
    assert "\x1b" not in out


def test_only_top_takes_several_nodes(run: RunAdmin) -> None:
    code, _, err = run("--url", "http://a", "--url", "http://b", "status")
    assert code == 2
    assert "only top turns to several nodes" in err


def test_nobody_to_ask_is_an_error_and_no_screen(run: RunAdmin) -> None:
    code, out, err = run("--url", "http://127.0.0.1:1", "top", "--once")
    assert (code, out) == (1, "")
    assert "is smg-node running?" in err


class Sitting:
    """Somebody at a terminal of 80 by 24."""

    def __init__(self, url: str) -> None:
        self.said = b""
        self.pid, self._fd = pty.fork()
        if not self.pid:
            os.environ["TERM"] = "xterm"
            command = ["-m", "smg_node.admin.cli", "--url", url, "top", "-i", "0.2"]
            os.execv(sys.executable, [sys.executable, *command])
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    @property
    def screen(self) -> str:
        whole = self.said.rpartition(b"\x1b[H")[2].decode("utf-8", "replace")
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", whole)

    def until(self, text: str) -> None:
        """Wait until that is on the screen."""
        end_s = time.monotonic() + _PATIENCE_S
        while text not in self.screen:
            assert time.monotonic() < end_s, f"no {text!r} in:\n{self.screen}"
            if select.select([self._fd], [], [], 0.1)[0]:
                self.said += os.read(self._fd, 65_536)

    def press(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def gone(self) -> int:
        """Wait until the command has ended; return its exit code."""
        while select.select([self._fd], [], [], _PATIENCE_S)[0]:
            try:
                sent = os.read(self._fd, 65_536)
            except OSError:
                break
            if not sent:
                break
            self.said += sent
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _grown(cluster: ToldCluster) -> Mapping[str, Any]:
    cluster.pass_s(1)
    cluster["a"].count("smg_node_completion_tokens_total", ("llama",), 100)
    return cluster.said()


def test_on_a_terminal_it_is_watched_until_somebody_has_seen_enough() -> None:
    cluster = ToldCluster("a", "b")
    with listening(ToldNode()) as told:
        told.tell(cluster)
        sitting = Sitting(told.url)
        sitting.until("2 ready")
        told.answers["/v1/cluster/metrics"] = (200, _grown(cluster))
        sitting.press("2")
        sitting.until("grpc://e1:1")
        sitting.press("?")
        sitting.until("show or hide the keys")
        sitting.press("1")
        cluster["b"].state, cluster["b"].silent = "dead", "it is dead"
        told.answers["/v1/cluster/metrics"] = (200, _grown(cluster))
        sitting.until("b: it is dead")
    # The only node is gone: what was seen last stays, with the reason.
    sitting.until("no node answers at")
    assert "b     dead" in sitting.screen
    sitting.press("q")
    assert sitting.gone() == 0
    assert sitting.said.endswith(b"\x1b[?25h\x1b[?1049l"), "the terminal is given back"
