"""Stand-ins of vendors for tests: as a machine without I/O, in this process, in a thread, or as a process."""

import asyncio
import re
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

import msgspec

from smg_chaos.vendor.access.sigv4 import SignedRequest
from smg_chaos.vendor.reply import Reply
from smg_chaos.vendor.server import VendorServer
from smg_chaos.vendor.settings import VendorSettings
from smg_chaos.vendor.vendor import Times, Vendor
from smg_node.system_clock import SystemClock
from support.processes.process import Process, running

KEY: Final = "sk-vendor"
KEY_ID: Final = "AKIDVENDOR"
SECRET: Final = "vendor-secret"
VERSION: Final = "2026-10-21"
WALL_S: Final = 1_790_000_000.0
_LISTENING: Final = re.compile(r"listening on (\S+) kind=(\S+) base=(\S+)")
_READY_S: Final = 60.0


class Desk:
    """A stand-in without I/O: requests go in, replies come out, and time is what the test says."""

    def __init__(self, kind: str, **settings: Any) -> None:
        self.vendor = Vendor(VendorSettings(kind=kind, **settings), 0.0)
        self.now_s = 0.0

    @property
    def times(self) -> Times:
        """The time of the test."""
        return Times(self.now_s, WALL_S + self.now_s)

    def ask(
        self,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        method: str = "",
    ) -> Reply:
        """Return the reply to a request with good credentials, unless `headers` say otherwise."""
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        raw_path, _, query = path.partition("?")
        heads = dict.fromkeys(("x-api-key", "api-key", "x-goog-api-key"), KEY)
        heads |= {"authorization": f"Bearer {KEY}", "anthropic-version": VERSION}
        heads |= {"anthropic-workspace-id": "wrkspc_1", **(headers or {})}
        asked = method or ("GET" if body is None else "POST")
        request = SignedRequest(asked, raw_path, query, heads, b"" if body is None else raw)
        return self.vendor.answer(request, self.times)

    def told(self, path: str, body: Any = None, **more: Any) -> Any:
        """Return the body of such a reply, which must be a success."""
        reply = self.ask(path, body, **more)
        assert reply.status == 200, reply.body
        self.settle(reply)
        return msgspec.json.decode(reply.body)

    def refused(self, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        """Return status and body of such a reply, which must be none."""
        reply = self.ask(path, body, **more)
        assert reply.status >= 400, reply.body
        return reply.status, msgspec.json.decode(reply.body)

    def streamed(self, path: str, body: Any, **more: Any) -> bytes:
        """Return all bytes of a stream."""
        reply = self.ask(path, body, **more)
        assert reply.status == 200, reply.body
        assert reply.frames is not None
        self.settle(reply)
        return b"".join(frame.content for frame in reply.frames)

    def settle(self, reply: Reply) -> None:
        """Book a reply as delivered."""
        if reply.charge is not None:
            self.vendor.settle(reply.charge, reply.charge.cost.answer, self.times, whole=True)


def sse(stream: bytes) -> list[Any]:
    """Return the data of every event of a stream, `[DONE]` as it is."""
    data = [
        line[5:].strip()
        for line in stream.replace(b"\r\n", b"\n").split(b"\n")
        if line.startswith(b"data:")
    ]
    return [one.decode() if one == b"[DONE]" else msgspec.json.decode(one) for one in data]


@dataclass(frozen=True)
class StandIn:
    """A stand-in that listens. `base` is what clients of its hosting are given."""

    port: int
    base: str

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.port}"

    def admin(self, path: str, value: Any = None, method: str = "") -> Any:
        """Ask an admin route, with a value to send or none. It blocks: for stand-ins outside of this loop."""
        data = None if value is None else msgspec.json.encode(value)
        request = Request(f"{self.url}/_vendor{path}", data, method=method or None)
        with urlopen(request, timeout=30) as answer:
            return msgspec.json.decode(answer.read())


@asynccontextmanager
async def stand_in(kind: str, **settings: Any) -> AsyncIterator[tuple[StandIn, Vendor]]:
    """Serve a stand-in on this loop."""
    server = VendorServer(VendorSettings(kind=kind, **settings), SystemClock())
    port = await server.listen("127.0.0.1", 0)
    try:
        yield StandIn(port, server.base), server.vendor
    finally:
        await server.close()


@contextmanager
def threaded_stand_in(kind: str, **settings: Any) -> Iterator[StandIn]:
    """Serve a stand-in on a loop of its own, in a thread, for clients that block."""
    started: list[StandIn] = []
    ready, ended = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with stand_in(kind, **settings) as (where, _):
            started.append(where)
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="stand-in", daemon=True)
    thread.start()
    try:
        assert ready.wait(_READY_S), "the stand-in does not listen"
        yield started[0]
    finally:
        if loops:
            loops[0].call_soon_threadsafe(ended.set)
        thread.join(_READY_S)


@contextmanager
def running_stand_ins(scratch: Path, *flags: str) -> Iterator[tuple[list[StandIn], Process]]:
    """Run `smg-chaos vendor` with these flags: a stand-in for each `--kind`, in order."""
    program = Path(sys.executable).with_name("smg-chaos")
    count = max(1, flags.count("--kind"))
    with running([str(program), "vendor", *flags], folder=scratch) as process:

        def listening() -> bool:
            return len(_LISTENING.findall(process.said())) == count

        process.wait_until(listening, "listening", _READY_S)
        rows = _LISTENING.findall(process.said())
        yield [StandIn(int(where.rpartition(":")[2]), base) for where, _, base in rows], process
