"""TCP proxy that breaks connections: each is reset after so many bytes of its answer as a test says."""

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_RESET = struct.pack("ii", 1, 0)
_CHUNK_BYTES = 65_536
_POLL_S = 0.2


class CuttingProxy:
    """Forwards to a port of this machine. `cuts` are the bytes after which the next connections break."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(_POLL_S)
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []
        self.cuts: list[int] = []
        self.between_writes = False
        """Whether what the node wrote at once arrives whole before the connection ends."""
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
            thread = threading.Thread(target=self._forward, args=(client, cut))
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

    def _forward(self, client: socket.socket, cut: int | None) -> None:
        with client, socket.create_connection(self._target) as server:
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
                        with contextlib.suppress(OSError):
                            client.sendall(data if self.between_writes else data[:left])
                        if self.between_writes:
                            return
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
def cutting_proxy(port: int) -> Iterator[CuttingProxy]:
    """Run a proxy in a thread."""
    proxy = CuttingProxy(port)
    thread = threading.Thread(target=proxy.serve)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join()
        proxy.release()
