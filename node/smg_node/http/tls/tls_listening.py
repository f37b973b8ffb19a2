"""TLS listening: the certificates of a server's listeners, watched, and the listeners that show them."""

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.server.listen_sockets import tcp_sockets
from smg_node.http.tls.certificate_watch import CertificateWatch
from smg_node.http.tls.server_contexts import TlsFilesError, undecodable_host
from smg_node.http.tls.tls_server import Outcome, TlsServer
from smg_node.http.tls_options import TlsOptions
from smg_node.process_memory import set_mmap_threshold
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.meters import Meters

PLAIN_LOOP_CONNECTIONS: Final = 2048
"""The standard event loop takes 280 KB for an idle TLS connection, uvloop 25."""
_UVLOOP_BUFFER_BYTES: Final = 262_144
"""What uvloop takes for every TLS connection to read into, of which small requests touch a page. Between the many small
pieces of a handshake in the heap, each keeps 25 KB from being used again: 48 KB an idle connection, 26 with pages of its own."""
_log: Final = logging.getLogger("smg_node.http")


class TlsListening:
    """Certificates and TLS listeners of one server; `open`, `listen`, and in the end `close`, all in one task."""

    def __init__(self, options: TlsOptions, meters: Meters, now_ms: Callable[[], int]) -> None:
        self._options: Final = options
        self._meters: Final = meters
        self._watch: Final = CertificateWatch(options, self, now_s=lambda: now_ms() / 1000)
        self._group: Final = asyncio.TaskGroup()
        self._looking: asyncio.Task[None] | None = None
        self._complaints = sys.unraisablehook
        meters.watch(declared.TLS_EXPIRES, self._expiries)

    async def open(self) -> None:
        """Read the certificates, and look after them from now on; INTERNAL where they will not do."""
        try:
            await self._watch.open()
        except TlsFilesError as error:
            raise SmgError(ErrorKind.INTERNAL, f"http.tls: {error}") from error
        if self._options.more:
            # Else any client could fill the log with tracebacks.
            self._complaints, sys.unraisablehook = sys.unraisablehook, self._complain
        if _on_uvloop():
            set_mmap_threshold(_UVLOOP_BUFFER_BYTES)
        await self._group.__aenter__()
        self._looking = self._group.create_task(self._watch.run())

    def connections_max(self) -> int:
        """Return how many connections the event loop has room for, whatever the settings allow."""
        if _on_uvloop():
            return sys.maxsize
        _log.info(
            "at most %d TLS connections are kept: without uvloop each takes 280 KB",
            PLAIN_LOOP_CONNECTIONS,
        )
        return PLAIN_LOOP_CONNECTIONS

    def listen(
        self, where: str, make: Callable[[], asyncio.Protocol], *, reuse_port: bool
    ) -> TlsServer:
        """Listen on `host:port`. OSError if it is taken, ValueError for an address that is none."""
        server = TlsServer(
            tcp_sockets(where, reuse_port=reuse_port),
            make,
            lambda: self._watch.current.context,
            self,
            self._group,
            handshake_s=self._options.handshake_s,
            handshakes_max=self._options.handshakes_max,
        )
        server.start()
        return server

    async def close(self) -> None:
        """Look at the files no longer, and wait for handshakes that closed listeners have ended. Safe to call twice."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
            if sys.unraisablehook == self._complain:
                sys.unraisablehook = self._complaints
            await self._group.__aexit__(None, None, None)

    def handshake(self, outcome: Outcome) -> None:
        """Count a handshake that is over."""
        self._meters.cells.tally(declared.TLS_HANDSHAKES, outcome).inc()

    def certificates_taken(self) -> None:
        """Count certificates that were taken anew."""
        self._meters.cells.tally(declared.TLS_RELOADS).inc()

    def certificates_refused(self) -> None:
        """Count changed files that will not do."""
        self._meters.cells.tally(declared.TLS_RELOAD_FAILURES).inc()

    def _complain(self, seen: "sys.UnraisableHookArgs") -> None:
        if not undecodable_host(seen):
            self._complaints(seen)

    def _expiries(self) -> Mapping[tuple[str, ...], float]:
        return {(name,): left_s for name, left_s in self._watch.expiries().items()}


def _on_uvloop() -> bool:
    return type(asyncio.get_running_loop()).__module__.startswith("uvloop")
