"""Which addresses a listening socket takes connections at: one family, or on `[::]` both."""

import asyncio
import errno
import socket
from pathlib import Path
from typing import cast

import pytest
import uvloop

from smg_node.config.address import Address
from smg_node.http.middleware.authorization import peer_of
from smg_node.http.server.listen_sockets import bound, listen, tcp_sockets
from smg_node.processes.listen_endpoints import listen_endpoints

_TABLE = Path("/proc/net/if_inet6")
HAS_IPV6 = socket.has_ipv6 and (not _TABLE.exists() or "00000001" in _TABLE.read_text())
"""Whether the machine has ::1 at all; without it the answer to every IPv6 address is a clear refusal."""
_NO_FAMILY = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


class Greeter(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        line = cast("asyncio.WriteTransport", transport)
        line.write(peer_of(line.get_extra_info("peername")).encode())
        line.close()


async def peers_seen(port: int) -> list[str]:
    """Return whom the server sees when ::1 and 127.0.0.1 connect; "" for one that cannot."""
    seen = []
    for host in ("::1", "127.0.0.1"):
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except OSError:
            seen.append("")
            continue
        seen.append((await reader.read()).decode())
        writer.close()
        await writer.wait_closed()
    return seen


async def served(where: str, *, reuse_port: bool) -> list[str]:
    try:
        server = await listen(where, Greeter, reuse_port=reuse_port)
    except OSError as error:
        return ["refused"] if error.errno in _NO_FAMILY else [str(error)]
    try:
        return await peers_seen(bound(server).port)
    finally:
        server.close()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("reuse_port", [False, True])
@pytest.mark.parametrize(
    ("where", "peers"),
    [
        ("[::]:0", ["::1", "127.0.0.1"] if HAS_IPV6 else ["refused"]),
        ("[::1]:0", ["::1", ""] if HAS_IPV6 else ["refused"]),
        ("0.0.0.0:0", ["", "127.0.0.1"]),
        (":0", ["", "127.0.0.1"]),
        ("127.0.0.1:0", ["", "127.0.0.1"]),
    ],
)
def test_every_address_serves_whom_it_names_and_sees_them_under_their_own_address(
    run: object, where: str, peers: list[str], *, reuse_port: bool
) -> None:
    assert callable(run)
    assert run(served(where, reuse_port=reuse_port)) == peers


async def test_a_port_that_ipv4_has_is_refused_for_both_with_the_address() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"address .*'::', {port}") as caught:
            await listen(f"[::]:{port}", Greeter, reuse_port=False)
    assert caught.value.errno == (errno.EADDRINUSE if HAS_IPV6 else errno.EAFNOSUPPORT)


async def test_processes_that_share_a_port_share_it_in_both_families(tmp_path: Path) -> None:
    held = Address("::" if HAS_IPV6 else "0.0.0.0", 0)
    with listen_endpoints(tmp_path, "n1", held) as place:
        port = place.address.port
        servers = [await listen(str(place.address), Greeter, reuse_port=True) for _ in range(2)]
        assert await peers_seen(port) == (["::1"] if HAS_IPV6 else [""]) + ["127.0.0.1"]
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("0.0.0.0", port))
        for server in servers:
            server.close()


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        (("::ffff:10.0.0.7", 5, 0, 0), "10.0.0.7"),
        (("::ffff:a00:7", 5, 0, 0), "::ffff:a00:7"),
        (("2001:db8::1", 5, 0, 0), "2001:db8::1"),
        (("10.0.0.7", 5), "10.0.0.7"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_peer_of_ipv4_is_written_as_one(name: object, peer: str) -> None:
    assert peer_of(name) == peer


@pytest.mark.parametrize("order", [1, -1])
def test_an_address_of_a_family_that_the_kernel_has_not_is_left_out_beside_others(
    monkeypatch: pytest.MonkeyPatch, order: int
) -> None:
    real = socket.socket

    def without_ipv6(family: int, kind: int, protocol: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return real(family, kind, protocol)

    stream = (socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
    old = (socket.AF_INET, *stream, ("127.0.0.1", 0))
    new = (socket.AF_INET6, *stream, ("::1", 0, 0, 0))
    found: list[tuple[object, ...]] = [old, new]
    found = found[::order]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_of, **_with: found)
    monkeypatch.setattr(socket, "socket", without_ipv6)
    [raw] = tcp_sockets("somewhere:0", reuse_port=False)
    assert raw.getsockname()[0] == "127.0.0.1"
    raw.close()
    found.remove(old)
    with pytest.raises(OSError, match="not supported"):
        tcp_sockets("somewhere:0", reuse_port=False)
