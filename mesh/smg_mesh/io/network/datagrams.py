"""Datagrams: one UDP socket that never blocks: read until it is dry, send or drop.

asyncio's datagram protocol costs 17 µs a packet; `add_reader` and a loop of `recvfrom` 1.6 µs. What the
system does not take is a lost packet, which the protocol above is made for, and is counted here.
"""

import contextlib
import errno
import socket
import sys
from collections.abc import Callable
from typing import Final

from smg_mesh.io.counters import Counters
from smg_mesh.swim.messages import Address

DATAGRAM_BYTES_MAX: Final = 1400
RECEIVE_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""A loop that stalled for a second finds what it missed, and not the first 200 KB of it."""
_READ_BYTES: Final = 2048
_MAPPED: Final = "::ffff:"

# Linux's numbers; the socket module does not name them before Python 3.14.
_SO_RCVBUFFORCE: Final = 33
_IP_MTU_DISCOVER: Final = 10
_IPV6_MTU_DISCOVER: Final = 23
_PMTUDISC_WANT: Final = 1
_PMTUDISC_DO: Final = 2


class Datagrams:
    """A bound socket; `counters` gets every packet and byte, in and out, and every loss."""

    def __init__(self, host: str, port: int, *, counters: Counters) -> None:
        """Bind the numeric `host`; OSError if that cannot be."""
        self._v6 = ":" in host
        family = socket.AF_INET6 if self._v6 else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._counters = counters
        self._fragments = False
        try:
            if self._v6:
                only = 0 if host == "::" else 1
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
            self._both = self._v6 and host == "::"
            self._widen()
            self._forbid_fragments()
            self._socket.bind((host, port))
        except BaseException:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]

    def fileno(self) -> int:
        """Return the descriptor to watch."""
        return self._socket.fileno()

    @property
    def receive_buffer_bytes(self) -> int:
        """What the system granted."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)

    def drain(self, take: Callable[[bytes, Address], None], *, packets_max: int) -> bool:
        """Hand over what has arrived, at most `packets_max`; return whether the socket is dry."""
        receive = self._socket.recvfrom
        packets = octets = 0
        dry = False
        for _ in range(packets_max):
            try:
                content, source = receive(_READ_BYTES)
            except (BlockingIOError, InterruptedError):
                dry = True
                break
            except OSError as error:
                # An ICMP error that some systems report here; the packets behind it are still there.
                self._counters.add(
                    "datagram_read_failed", errno.errorcode.get(error.errno or 0, "")
                )
                continue
            packets += 1
            octets += len(content)
            if len(content) > DATAGRAM_BYTES_MAX:
                self._counters.add("refused", "size")
                continue
            host = source[0]
            if self._v6 and host.startswith(_MAPPED):
                host = host[len(_MAPPED) :]
            take(content, Address(host, source[1]))
        if packets:
            self._counters.add("datagrams_in", value=packets)
            self._counters.add("datagram_bytes_in", value=octets)
        return dry

    def send(self, datagram: bytes, to: Address) -> bool:
        """Send it now or lose it; return whether the system took it."""
        assert len(datagram) <= DATAGRAM_BYTES_MAX
        host = to.host
        if (":" in host) != self._v6:
            if not self._both:
                return self._lost("family")
            host = _MAPPED + host
        try:
            self._socket.sendto(datagram, (host, to.port))
        except (BlockingIOError, InterruptedError):
            return self._lost("full")
        except OSError as error:
            if error.errno == errno.EMSGSIZE and not self._fragments:
                return self._send_in_fragments(datagram, to)
            return self._lost(errno.errorcode.get(error.errno or 0, "other"))
        self._counters.add("datagrams_out")
        self._counters.add("datagram_bytes_out", value=len(datagram))
        return True

    def close(self) -> None:
        """Give the port back; what is sent afterwards is lost and counted."""
        self._socket.close()

    def _lost(self, why: str) -> bool:
        self._counters.add("datagram_lost", why)
        return False

    def _send_in_fragments(self, datagram: bytes, to: Address) -> bool:
        """Some link is narrower than a packet: from now on, in pieces is better than not at all."""
        self._fragments = True
        self._discover(_PMTUDISC_WANT)
        self._counters.add("datagram_fragments_allowed")
        return self.send(datagram, to)

    def _widen(self) -> None:
        for option in (socket.SO_RCVBUF, *([_SO_RCVBUFFORCE] if sys.platform == "linux" else [])):
            # Without the privilege the smaller of our wish and the system's limit stays.
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, option, RECEIVE_BUFFER_BYTES)

    def _forbid_fragments(self) -> None:
        self._discover(_PMTUDISC_DO)

    def _discover(self, how: int) -> None:
        """Set what the system does about paths narrower than a packet, where it can be told."""
        if sys.platform != "linux":
            return
        with contextlib.suppress(OSError):
            if self._v6:
                self._socket.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, how)
            if not self._v6 or self._both:
                self._socket.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, how)
