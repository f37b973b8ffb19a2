import errno
import os
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from smg_node.http.server.listen_sockets import leave_to_others


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two sockets that listen on one port, as two processes have them."""
    with ExitStack() as stack:
        sockets: list[socket.socket] = []
        for _ in range(2):
            raw = stack.enter_context(socket.socket())
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            raw.bind(sockets[0].getsockname() if sockets else ("127.0.0.1", 0))
            raw.listen(256)
            raw.setblocking(False)
            sockets.append(raw)
        yield sockets[0], sockets[1]


def accepted(raw: socket.socket) -> int:
    count = 0
    with suppress(BlockingIOError):
        while True:
            raw.accept()[0].close()
            count += 1
    return count


def begun(stack: ExitStack, address: tuple[str, int], count: int) -> list[socket.socket]:
    clients = []
    for _ in range(count):
        client = stack.enter_context(socket.socket())
        client.setblocking(False)
        client.connect_ex(address)
        clients.append(client)
    return clients


def test_a_socket_that_leaves_is_given_no_connection_and_what_it_has_stays(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    leaving, other = pair
    with ExitStack() as stack:
        begun(stack, leaving.getsockname(), 64)
        had = accepted(leaving)
        assert 0 < had < 64
        begun(stack, leaving.getsockname(), 32)
        # As its owner does it: by a copy of the descriptor.
        with socket.socket(fileno=os.dup(leaving.fileno())) as copy:
            leave_to_others(copy)
        begun(stack, leaving.getsockname(), 64)
        between = accepted(leaving)
        assert 0 < between < 32, "those that were made before"
        assert accepted(leaving) == 0
        assert accepted(other) > 0


def test_who_was_not_heard_is_heard_by_the_other_when_it_asks_again(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    leaving, other = pair
    leave_to_others(leaving)
    with ExitStack() as stack:
        clients = begun(stack, leaving.getsockname(), 16)
        leaving.close()
        for client in clients:
            _, made, _ = select.select([], [client], [], 30)
            assert made == [client]
            assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        assert accepted(other) == 16


def test_a_system_without_packet_filters_keeps_nobody_from_leaving() -> None:
    class Sandboxed(socket.socket):
        def setsockopt(self, *_of: object) -> None:
            raise OSError(errno.ENOPROTOOPT, "Protocol not available")

    with Sandboxed() as raw:
        raw.bind(("127.0.0.1", 0))
        raw.listen()
        leave_to_others(raw)
        with socket.create_connection(raw.getsockname(), 5):
            raw.accept()[0].close()
