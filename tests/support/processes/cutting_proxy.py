"""TCP proxy that breaks connections: each ends after so many bytes of its answer as a test says.

Before several nodes it is one address for all of them: connections go to them in turn, and past those
that take none.
"""

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias

Ending: TypeAlias = Literal["reset", "close", "between writes"]
"""How a connection ends: with a reset; like one that is over; or so, but when what the node wrote at once is whole."""
_RESET = struct.pack("ii", 1, 0)
_CHUNK_BYTES = 65_536
_POLL_S = 0.2


class CuttingProxy:
    """Forwards to ports of this machine. `cuts` are the bytes after which the next connections break."""

    def __init__(self, *ports: int) -> None:
        self.ports: Final = list(ports)
        """Where connections go, in turn."""
        self._turn = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(_POLL_S)
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []
        self.cuts: list[int] = []
        self.ending: Ending = "reset"
        self.broken = 0
        """How many connections were cut."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        """Accept until closed."""
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            cut = self.cuts.pop(0) if self.cuts else None
            thread = threading.Thread(target=self._forward, args=(client, cut, self._turn))
            self._turn += 1
            self._threads = [one for one in self._threads if one.is_alive()]
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """Stop accepting, and end what is open."""
        self._closed.set()
        for thread in self._threads:
            thread.join()

    def release(self) -> None:
        """Give its port back, when nobody serves any more."""
        self._listener.close()

    def _connected(self, turn: int) -> socket.socket:
        """Return a connection to the node whose turn it is, or to the next one that takes it."""
        ports = self.ports
        for place in range(turn, turn + len(ports) - 1):
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", ports[place % len(ports)]))
        return socket.create_connection(("127.0.0.1", ports[(turn - 1) % len(ports)]))

    def _forward(self, client: socket.socket, cut: int | None, turn: int) -> None:
        with client, self._connected(turn) as server:
            left = cut
            while not self._closed.is_set():
                ready, _, _ = select.select([client, server], [], [], _POLL_S)
                for source in ready:
                    data = _received(source)
                    if not data:
                        return
                    if source is client:
                        server.sendall(data)
                        continue
                    if left is not None and len(data) >= left:
                        self.broken += 1
                        whole = self.ending == "between writes"
                        with contextlib.suppress(OSError):
                            client.sendall(data if whole else data[:left])
                        if self.ending == "reset":
                            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                        return
                    left = None if left is None else left - len(data)
                    with contextlib.suppress(OSError):
                        client.sendall(data)


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(_CHUNK_BYTES)
    except OSError:
        return b""


@contextmanager
def cutting_proxy(*ports: int) -> Iterator[CuttingProxy]:
    """Run a proxy in a thread."""
    proxy = CuttingProxy(*ports)
    thread = threading.Thread(target=proxy.serve)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join()
        proxy.release()
