"""Process link: engines of several processes ask each other for prompts over TCP, in lines of JSON.

    > {"key": "room 17"}
    < {"digest": 1234, "tokens": 70, "cached": 32, "pictures": []}        or {"gone": "why"}
    > {"took": true}

A side that closes the connection before has withdrawn, or is gone.
"""

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from smg_chaos.engine.pairs.handover import Asking, Gone, Handed, Heard
from smg_chaos.engine.simulator.engine import Engine

_LINE_MAX: Final = 64 * 1024
"""The longest line either side reads; keys are ids, and a hundred bytes long."""
_READ_BYTES: Final = 4096
_ANYWHERE: Final = frozenset({"", "0.0.0.0", "::"})


class Passage:
    """One engine's listener for others, and its questions to theirs. `settle` is called after every
    change they cause.
    """

    def __init__(
        self, engine: Engine, now_s: Callable[[], float], settle: Callable[[], None]
    ) -> None:
        self.engine = engine
        self.now_s = now_s
        self.settle = settle
        self.guests: dict[_Guest, None] = {}
        self.questions: dict[_Question, None] = {}
        self._server: asyncio.Server | None = None

    async def open(self, host: str) -> None:
        """Listen for others if anything can be fetched here; from now on others are asked over TCP."""
        pairs = self.engine.pairs
        pairs.courier = self
        advertised = "127.0.0.1" if host in _ANYWHERE else host
        pairs.where = (advertised, pairs.where[1])
        if pairs.serves:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(lambda: _Guest(self), host, pairs.where[1])
            pairs.where = (advertised, self._server.sockets[0].getsockname()[1])

    def ask(self, host: str, port: int, key: str, heard: Heard, now_s: float) -> Asking:
        """Ask the engine at an address, without waiting."""
        question = _Question(self, key, heard)
        self.questions[question] = None
        question.begin(host, port, now_s)
        return question

    def close(self) -> None:
        """Close the listener and every connection."""
        if self._server is not None:
            self._server.close()
        for guest in list(self.guests):
            guest.leave()
        for question in list(self.questions):
            question.close()


class _Guest(asyncio.Protocol):
    """An engine that asks this one."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._asking: Asking | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._passage.guests[self] = None

    def connection_lost(self, error: Exception | None) -> None:
        self._passage.guests.pop(self, None)
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.withdraw(self._passage.now_s())
            self._passage.settle()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            self._read(_object(line))
        if len(self._buffer) > _LINE_MAX:
            self.leave()

    def _read(self, said: dict[str, Any]) -> None:
        passage, now_s = self._passage, self._passage.now_s()
        key = said.get("key")
        if self._asking is None and isinstance(key, str):
            self._asking = passage.engine.pairs.asked(key, self._hear, now_s)
        elif self._asking is not None and said.get("took") is True:
            self._asking.took(now_s)
        else:
            self.leave()
        passage.settle()

    def _hear(self, asking: Asking, what: Handed | Gone, now_s: float) -> None:
        said: dict[str, Any] = (
            {"gone": what.reason}
            if isinstance(what, Gone)
            else {
                "digest": what.digest,
                "tokens": what.tokens,
                "cached": what.cached,
                "pictures": what.pictures,
            }
        )
        if self._transport is not None:
            self._transport.write(msgspec.json.encode(said) + b"\n")

    def leave(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.close()


class _Question:
    """One question to another engine, on a connection of its own."""

    def __init__(self, passage: Passage, key: str, heard: Heard) -> None:
        self._passage = passage
        self._line = msgspec.json.encode({"key": key}) + b"\n"
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None
        self._buffer = b""

    def begin(self, host: str, port: int, now_s: float) -> None:
        """Connect."""
        try:
            family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self._socket = socket.socket(family, kind)
            self._socket.setblocking(False)
            code = self._socket.connect_ex(address)
        except (OSError, UnicodeError) as error:
            code, reason = -1, str(error)
        else:
            reason = "nobody listens there"
        if code not in (0, errno.EINPROGRESS):
            self._end(Gone(reason, absent=True), now_s)
        elif self._socket is not None:
            self._loop.add_writer(self._socket, self._connected)

    def _connected(self) -> None:
        assert self._socket is not None, "it was being connected"
        self._loop.remove_writer(self._socket)
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code or not self._send(self._line):
            self._late(Gone(errno.errorcode.get(code, "cannot connect"), absent=True))
            return
        self._loop.add_reader(self._socket, self._readable)

    def _readable(self) -> None:
        assert self._socket is not None, "it is connected"
        try:
            data = self._socket.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        self._buffer += data
        if not data or len(self._buffer) > _LINE_MAX:
            self._late(Gone("the prefill engine is gone"))
        elif b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            self._answered(_object(line))

    def _answered(self, said: dict[str, Any]) -> None:
        digest, tokens, cached = (said.get(name) for name in ("digest", "tokens", "cached"))
        if isinstance(digest, int) and isinstance(tokens, int) and isinstance(cached, int):
            pictures = tuple([str(one) for one in said.get("pictures") or ()])
            self._heard(self, Handed(digest, tokens, cached, pictures), self._passage.now_s())
            self._passage.settle()
        else:
            self._late(Gone(str(said.get("gone", "nonsense was answered"))))

    def _send(self, line: bytes) -> bool:
        """Send a line; return False where it cannot be sent: lines are short, and the connection
        new.
        """
        try:
            return self._socket is not None and self._socket.send(line) == len(line)
        except OSError:
            return False

    def _late(self, gone: Gone) -> None:
        self._end(gone, self._passage.now_s())
        self._passage.settle()

    def _end(self, gone: Gone, now_s: float) -> None:
        self.close()
        self._heard(self, gone, now_s)

    def took(self, now_s: float) -> None:
        """Take what was announced: it is the asker's from now on."""
        self._send(b'{"took": true}\n')
        self.close()

    def withdraw(self, now_s: float) -> None:
        """Withdraw the question."""
        self.close()

    def close(self) -> None:
        """Close the connection; safe to do more than once."""
        self._passage.questions.pop(self, None)
        one, self._socket = self._socket, None
        if one is not None:
            self._loop.remove_reader(one)
            self._loop.remove_writer(one)
            one.close()


def _object(line: bytes) -> dict[str, Any]:
    """Return the object a line holds, an empty one for anything else."""
    try:
        said = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return {}
    return said if isinstance(said, dict) else {}
