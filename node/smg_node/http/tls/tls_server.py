"""TLS server: accepts connections, and hands over those whose handshake has succeeded.

    accept ──▶ handshake, at most so many at once, each with its deadline ──▶ the protocol's connection_made

The event loop's own TLS servers tell nobody of handshakes that are under way, so they could neither be
counted nor limited there. Each handshake uses the context that is in force when it begins: renewed
certificates need no other server, and connections that are open go on.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol, TypeAlias

Outcome: TypeAlias = Literal["ok", "failed", "timeout", "gone", "plain_http", "refused"]
"""What became of a handshake; `refused`: as many as may be were under way."""

_AT_ONCE: Final = 64
"""So many connections are accepted in one turn of the loop."""
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_NO_ROOM_PAUSE_S: Final = 1.0
_SHUTDOWN_S: Final = 5.0
"""So long a closing connection waits for the client's own goodbye."""

_log: Final = logging.getLogger("smg_node.http")


class Handshakes(Protocol):
    """Counts handshakes."""

    def handshake(self, outcome: Outcome) -> None:
        """Count one that is over."""
        ...


class TlsServer:
    """A server on sockets that listen already; it has of `asyncio.Server` what its owner needs."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        make: Callable[[], asyncio.Protocol],
        context: Callable[[], ssl.SSLContext],
        counts: Handshakes,
        group: asyncio.TaskGroup,
        *,
        handshake_s: float,
        handshakes_max: int,
    ) -> None:
        """Take `make`, which returns the protocol of a new connection, and `context`, which returns
        the one in force. Handshakes are tasks of `group`.
        """
        self._group = group
        self._sockets = tuple(sockets)
        self._make = make
        self._context = context
        self._counts = counts
        self._handshake_s = handshake_s
        self._handshakes_max = handshakes_max
        self._open: set[asyncio.Task[None]] = set()
        self._closed = False
        self._full_said = False
        self._timers: dict[socket.socket, asyncio.TimerHandle] = {}

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """Sockets it listens on."""
        return self._sockets

    @property
    def handshakes(self) -> int:
        """Number of handshakes under way."""
        return len(self._open)

    def start(self) -> None:
        """Accept connections from now on."""
        for raw in self._sockets:
            self._listen(raw)

    def close(self) -> None:
        """Listen no longer, and end handshakes that are under way; open connections go on. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        loop = asyncio.get_running_loop()
        for timer in self._timers.values():
            timer.cancel()
        for raw in self._sockets:
            loop.remove_reader(raw)
            raw.close()
        for task in self._open:
            task.cancel()

    def _listen(self, raw: socket.socket) -> None:
        self._timers.pop(raw, None)
        asyncio.get_running_loop().add_reader(raw, self._accept, raw)

    def _accept(self, raw: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                client, _ = raw.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                self._pause(raw, error)
                return
            self._begin(client)

    def _pause(self, raw: socket.socket, error: OSError) -> None:
        """Accept nothing for a second: the process has no more room, and the socket would stay ready."""
        loop = asyncio.get_running_loop()
        _log.error("cannot accept connections for a second: %s", error.strerror)
        loop.remove_reader(raw)
        self._timers[raw] = loop.call_later(_NO_ROOM_PAUSE_S, self._listen, raw)

    def _begin(self, client: socket.socket) -> None:
        if len(self._open) >= self._handshakes_max:
            client.close()
            self._counts.handshake("refused")
            if not self._full_said:
                self._full_said = True
                _log.warning(
                    "turned a client away: %d TLS handshakes are under way, as many as may be"
                    " (http.tls.handshakes_max); further ones are counted only",
                    self._handshakes_max,
                )
            return
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._group.create_task(self._shake(client))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _shake(self, client: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make,
                client,
                ssl=self._context(),
                ssl_handshake_timeout=self._handshake_s,
                ssl_shutdown_timeout=_SHUTDOWN_S,
            )
        except ssl.SSLError as error:
            plain = error.reason == "HTTP_REQUEST"
            self._counts.handshake("plain_http" if plain else "failed")
            _log.debug("a TLS handshake failed: %s", error.reason)
        except ConnectionAbortedError:
            # The event loop's word for a handshake beyond its time.
            self._counts.handshake("timeout")
        except OSError:
            self._counts.handshake("gone")
        except UnicodeDecodeError:
            # Python cannot read the names in the client's certificate; the event loop has closed the connection.
            self._counts.handshake("failed")
            _log.debug("a TLS handshake failed: the names in the client's certificate are no text")
        except asyncio.CancelledError:
            client.close()
            raise
        except Exception:
            # A door: a mistake of ours ends this handshake, and no other.
            self._counts.handshake("failed")
            _log.exception("a TLS handshake failed because of a mistake of ours")
            client.close()
        else:
            self._counts.handshake("ok")
