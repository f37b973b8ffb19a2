import errno
import socket
from collections.abc import Iterator

import pytest

from smg_mesh.io.counters import Counters
from smg_mesh.io.network.datagrams import DATAGRAM_BYTES_MAX, RECEIVE_BUFFER_BYTES, Datagrams
from smg_mesh.swim.messages import Address


class Ends:
    """Two sockets that know each other."""

    def __init__(self, host: str, other_host: str | None = None) -> None:
        self.counters = Counters()
        self.here = Datagrams(host, 0, counters=self.counters)
        self.there = Datagrams(other_host or host, 0, counters=Counters())
        self.got: list[tuple[bytes, Address]] = []

    def drain(self, packets_max: int = 64) -> bool:
        return self.here.drain(lambda *packet: self.got.append(packet), packets_max=packets_max)

    def close(self) -> None:
        self.here.close()
        self.there.close()


@pytest.fixture(params=["127.0.0.1", "::1"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    ends = Ends(request.param)
    yield ends
    ends.close()


def host_of(ends: Ends) -> str:
    return "::1" if ends.here._v6 else "127.0.0.1"


def test_a_packet_arrives_with_its_sender(ends: Ends) -> None:
    host = host_of(ends)
    assert ends.there.send(b"hello", Address(host, ends.here.port))
    assert ends.drain()
    assert ends.got == [(b"hello", Address(host, ends.there.port))]
    assert ends.counters.get("datagrams_in") == 1
    assert ends.counters.get("datagram_bytes_in") == 5


def test_draining_stops_at_its_limit_and_says_so(ends: Ends) -> None:
    to = Address(host_of(ends), ends.here.port)
    for number in range(10):
        ends.there.send(bytes([number]), to)
    assert not ends.drain(packets_max=6)
    assert ends.drain()
    assert [content for content, _ in ends.got] == [bytes([number]) for number in range(10)]


def test_an_empty_socket_is_dry(ends: Ends) -> None:
    assert ends.drain()
    assert ends.got == []
    assert ends.counters.all() == {}


def test_the_largest_packet_passes_and_a_larger_one_is_refused(ends: Ends) -> None:
    to = (host_of(ends), ends.here.port)
    assert ends.there.send(bytes(DATAGRAM_BYTES_MAX), Address(*to))
    family = socket.AF_INET6 if ends.here._v6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(bytes(DATAGRAM_BYTES_MAX + 1), to)
        stranger.sendto(bytes(20_000), to)
        stranger.sendto(b"", to)
    ends.drain()
    assert [len(content) for content, _ in ends.got] == [DATAGRAM_BYTES_MAX, 0]
    assert ends.counters.get("refused", "size") == 2


def test_a_packet_too_large_is_our_own_mistake(ends: Ends) -> None:
    with pytest.raises(AssertionError):
        ends.here.send(bytes(DATAGRAM_BYTES_MAX + 1), Address(host_of(ends), 9))


def test_a_full_socket_is_a_lost_packet(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def sendto(self, *_: object) -> int:
            raise BlockingIOError

        def close(self) -> None: ...

    ends.here._socket.close()
    monkeypatch.setattr(ends.here, "_socket", Full())
    assert not ends.here.send(b"x", Address(host_of(ends), 9))
    assert ends.counters.all() == {("datagram_lost", "full"): 1}


def test_the_other_family_cannot_be_reached(ends: Ends) -> None:
    other = "127.0.0.1" if ends.here._v6 else "::1"
    assert not ends.here.send(b"x", Address(other, 9))
    assert ends.counters.get("datagram_lost", "family") == 1


def test_a_closed_socket_loses_packets_quietly(ends: Ends) -> None:
    ends.here.close()
    assert not ends.here.send(b"x", Address(host_of(ends), 9))
    assert ends.counters.get("datagram_lost", "EBADF") == 1


def test_all_addresses_of_both_families_share_one_port() -> None:
    ends = Ends("::", "127.0.0.1")
    try:
        ends.there.send(b"four", Address("127.0.0.1", ends.here.port))
        ends.drain()
        assert ends.got == [(b"four", Address("127.0.0.1", ends.there.port))]
        got: list[bytes] = []
        assert ends.here.send(b"back", Address("127.0.0.1", ends.there.port))
        ends.there.drain(lambda content, _: got.append(content), packets_max=9)
        assert got == [b"back"]
    finally:
        ends.close()


def test_a_port_that_is_taken_is_an_error_and_leaks_nothing(ends: Ends) -> None:
    with pytest.raises(OSError, match="in use"):
        Datagrams(host_of(ends), ends.here.port, counters=Counters())


def test_a_narrow_link_gets_fragments_from_then_on(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ends.here._socket

    class Narrow:
        """A link of 1280 bytes that the system will not cut packets for, unless it may."""

        whole = True

        def setsockopt(self, level: int, option: int, value: int) -> None:
            real.setsockopt(level, option, value)
            self.whole = self.whole and value != 1

        def sendto(self, content: bytes, to: tuple[str, int]) -> int:
            if self.whole and len(content) > 1280 - 48:
                raise OSError(errno.EMSGSIZE, "too long")
            return real.sendto(content, to)

        def __getattr__(self, name: str) -> object:
            return getattr(real, name)

    monkeypatch.setattr(ends.here, "_socket", Narrow())
    got: list[bytes] = []
    to = Address(host_of(ends), ends.there.port)
    for size in (100, 1400, 1400):
        assert ends.here.send(bytes(size), to)
    ends.there.drain(lambda content, _: got.append(content), packets_max=9)
    assert [len(content) for content in got] == [100, 1400, 1400]
    assert ends.counters.get("datagram_fragments_allowed") == 1


def test_the_buffer_is_as_large_as_the_system_grants(ends: Ends) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        default = plain.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    assert default <= ends.here.receive_buffer_bytes <= 2 * RECEIVE_BUFFER_BYTES
