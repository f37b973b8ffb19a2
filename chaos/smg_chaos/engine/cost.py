"""Cost of a simulated engine: CPU time of its process per short request and per streamed token.

The server runs in a process of its own; its CPU time is read from the kernel before and after. The
load comes over raw HTTP/2 frames that were made in advance, so that the client costs little, and
every answer is counted.
"""

import asyncio
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, cast

import uvloop

from smg_chaos.engine.protocol.contracts import CONTRACTS
from smg_chaos.engine.servers import frames
from smg_chaos.engine.servers.hpack import literal

_WINDOW: Final = 1 << 30
_PROMPT_TOKENS: Final = 40
_BURST_TOKENS: Final = 128
_CONNECTIONS: Final = 2
_STEP_MS: Final = 20


class CostError(Exception):
    """A measurement that cannot be trusted."""


@dataclass(frozen=True, slots=True)
class Load:
    """Size of the load."""

    contract: str
    requests: int
    streams: int
    seconds: float


@dataclass(slots=True)
class Row:
    """One round of one server, in microseconds of CPU time."""

    server: str
    figures: dict[str, float] = field(default_factory=dict)


def measure(server: Literal["grpc", "h2"], load: Load, say: Callable[[str], None]) -> Row:
    """Start a server, load it, and return its cost."""
    row = Row(server)
    row.figures |= _run(server, load, step_ms=0, work=_Burst(load))
    row.figures |= _run(server, load, step_ms=_STEP_MS, work=_Paced(load))
    say(server + ": " + ", ".join(f"{name} {value:.1f}" for name, value in row.figures.items()))
    return row


def table(rows: Sequence[Row]) -> str:
    """Return the medians and the spread of all rounds, one line a figure."""
    lines = [f"{'µs of CPU':32}" + "".join(f"{name:>24}" for name in ("grpc", "h2"))]
    for name in rows[0].figures:
        line = f"{name:32}"
        for server in ("grpc", "h2"):
            values = sorted(row.figures[name] for row in rows if row.server == server)
            middle = statistics.median(values)
            line += f"{middle:10.1f} ({values[0]:.1f}..{values[-1]:.1f})".rjust(24)
        lines.append(line)
    return "\n".join(lines)


# ── The server's process ────────────────────────────────────────────────────


def _run(server: str, load: Load, *, step_ms: int, work: "_Burst | _Paced") -> dict[str, float]:
    command = [
        *(sys.executable, "-m", "smg_chaos.cli", "engine", "--server", server),
        *("--contract", load.contract, "--itl-ms", str(step_ms), "--prefill-tokens-per-s", "0"),
        *("--coalesce", "1", "--slots", "1024", "--blocks", "65536", "--script", "endless"),
        *("--pace", "each"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None, "the server's output was asked for"
        words = process.stdout.readline().split()
        if len(words) < 3:
            raise CostError("the server did not start")
        port = int(words[2].rpartition(":")[2])
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(work.run(port, lambda: cpu_s(process.pid)))
    finally:
        process.terminate()
        process.wait()


def cpu_s(pid: int) -> float:
    """Return the CPU seconds a process has used so far, all its threads together.

    CostError where the kernel does not report them (it does on Linux).
    """
    total = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    except OSError:
        return _coarse_cpu_s(pid)
    return total / 1e9


def _coarse_cpu_s(pid: int) -> float:
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError as error:
        raise CostError("CPU time of another process can be read on Linux only") from error
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


# ── The load ────────────────────────────────────────────────────────────────


class _Client(asyncio.Protocol):
    """Sends prepared requests over one connection and counts the messages it receives."""

    def __init__(self, service: str) -> None:
        self._headers = b"".join(
            [
                literal(name, value)
                for name, value in (
                    (b":method", b"POST"),
                    (b":scheme", b"http"),
                    (b":path", f"/{service}/Generate".encode()),
                    (b":authority", b"localhost"),
                    (b"te", b"trailers"),
                    (b"content-type", b"application/grpc"),
                )
            ]
        )
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._next = 1
        self._ended: dict[int, Callable[[], None]] = {}
        self.messages = 0
        self._missing: dict[int, int] = {}
        self._unreturned = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the HTTP/2 preface, with windows that never fill up."""
        # uvloop's transports are no subclass of asyncio's.
        self._transport = transport = cast(asyncio.Transport, transport)
        greeting = frames.PREFACE + frames.settings((frames.SET_INITIAL_WINDOW, _WINDOW))
        transport.write(greeting + frames.window_update(0, _WINDOW))

    def ask(self, body: bytes, ended: Callable[[], None]) -> None:
        """Send a request; `ended` is called when its trailers have come."""
        assert self._transport is not None, "the client is connected"
        number, self._next = self._next, self._next + 2
        self._ended[number] = ended
        self._transport.write(
            frames.frame(frames.HEADERS, frames.END_HEADERS, number, self._headers)
            + frames.frame(frames.DATA, frames.END_STREAM, number, frames.prefixed(body))
        )

    def data_received(self, data: bytes) -> None:
        """Count messages and ends."""
        buffer = self._buffer
        buffer += data
        at, end = 0, len(buffer)
        while end - at >= 9:
            high, low, kind, flags, number = frames.HEAD.unpack_from(buffer, at)
            length = high << 16 | low
            if end - at - 9 < length:
                break
            if kind == frames.DATA:
                self._unreturned += length
                self._count(number, buffer, at + 9, at + 9 + length)
            at += 9 + length
            if kind in (frames.HEADERS, frames.DATA) and flags & frames.END_STREAM:
                self._missing.pop(number, None)
                self._ended.pop(number)()
            elif kind == frames.SETTINGS and not flags & frames.ACK:
                self._write(frames.frame(frames.SETTINGS, frames.ACK, 0))
            elif kind == frames.PING and not flags & frames.ACK:
                self._write(
                    frames.frame(frames.PING, frames.ACK, 0, bytes(buffer[at - length : at]))
                )
        del buffer[:at]
        if self._unreturned > _WINDOW // 4:
            self._write(frames.window_update(0, self._unreturned))
            self._unreturned = 0

    def _count(self, number: int, buffer: bytearray, at: int, end: int) -> None:
        """Count the messages that begin in a frame; one may go on in the next."""
        at += self._missing.get(number, 0)
        while at < end:
            self.messages += 1
            at += frames.GRPC_PREFIX + int.from_bytes(buffer[at + 1 : at + 5], "big")
        self._missing[number] = at - end

    def _write(self, content: bytes) -> None:
        if self._transport is not None:
            self._transport.write(content)

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


class _Work:
    """Base of both kinds of load."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.contract = CONTRACTS[load.contract]

    def request(self, tokens: int, *, stream: bool) -> bytes:
        """Return a serialised GenerateRequest."""
        ids = range(1, _PROMPT_TOKENS + 1)
        return self.contract.ask(
            ids, request_id="cost", max_tokens=tokens, stream=stream, repetition_penalty=1.0
        )

    async def connect(self, port: int) -> list[_Client]:
        """Return connected clients."""
        loop = asyncio.get_running_loop()
        clients = []
        for _ in range(_CONNECTIONS):
            _, client = await loop.create_connection(
                lambda: _Client(self.contract.service), "127.0.0.1", port
            )
            clients.append(client)
        return clients

    async def closed_loop(self, clients: Sequence[_Client], body: bytes, count: int) -> int:
        """Keep some requests open until `count` have ended; return the messages they brought."""
        before = sum(client.messages for client in clients)
        done = asyncio.Event()
        left = {"to_ask": count, "to_end": count}

        def ask(client: _Client) -> None:
            if left["to_ask"]:
                left["to_ask"] -= 1
                client.ask(body, lambda: ended(client))

        def ended(client: _Client) -> None:
            left["to_end"] -= 1
            if left["to_end"]:
                ask(client)
            else:
                done.set()

        for client in clients:
            for _ in range(16):
                ask(client)
        await asyncio.wait_for(done.wait(), 600)
        return sum(client.messages for client in clients) - before


class _Burst(_Work):
    """Everything as fast as possible: short requests, then streams of many tokens."""

    async def run(self, port: int, cpu: Callable[[], float]) -> dict[str, float]:
        """Return the cost of a short request and of a token in a burst."""
        clients = await self.connect(port)
        whole = self.request(8, stream=False)
        await self.closed_loop(clients, whole, 300)  # warm
        count = self.load.requests
        begun = cpu()
        messages = await self.closed_loop(clients, whole, count)
        short = (cpu() - begun) / count * 1e6
        _expect(messages, count)
        one, many = self.request(1, stream=True), self.request(_BURST_TOKENS, stream=True)
        figures = {"short request, not streamed": short}
        costs = []
        for body, tokens in ((one, 1), (many, _BURST_TOKENS)):
            total = max(100, count // 10)
            begun = cpu()
            messages = await self.closed_loop(clients, body, total)
            costs.append((cpu() - begun) / total * 1e6)
            _expect(messages, total * (tokens + 1))
        figures["stream of 1 token"] = costs[0]
        figures["token, burst"] = (costs[1] - costs[0]) / (_BURST_TOKENS - 1)
        for client in clients:
            client.close()
        return figures


class _Paced(_Work):
    """Many streams, a token every 20 ms in each."""

    async def run(self, port: int, cpu: Callable[[], float]) -> dict[str, float]:
        """Return the cost of a paced token."""
        clients = await self.connect(port)
        tokens = int((self.load.seconds + 2) * 1000 / _STEP_MS)
        body = self.request(tokens, stream=True)
        for number in range(self.load.streams):
            clients[number % len(clients)].ask(body, lambda: None)
            await asyncio.sleep(_STEP_MS / 1000 / self.load.streams)  # streams out of phase
        await asyncio.sleep(0.5)
        begun, before = cpu(), sum(client.messages for client in clients)
        await asyncio.sleep(self.load.seconds)
        used, came = cpu() - begun, sum(client.messages for client in clients) - before
        wanted = self.load.streams * self.load.seconds * 1000 / _STEP_MS
        if not 0.8 * wanted <= came <= 1.2 * wanted:
            raise CostError(f"{came} tokens came instead of {wanted:.0f}")
        for client in clients:
            client.close()
        return {f"token, every {_STEP_MS} ms, {self.load.streams} streams": used / came * 1e6}


def _expect(messages: int, wanted: int) -> None:
    if messages != wanted:
        raise CostError(f"{messages} messages came instead of {wanted}")
