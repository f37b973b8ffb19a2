"""A name server on a free port of this machine that says what a test tells it to."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from smg_mesh.swim.messages import Address
from support.mesh.mesh_cluster import free_port

Reply = Callable[[bytes], Sequence[bytes]]
"""From a question (without any length) to the packets to send back."""


@dataclass
class DnsServer:
    """Where it listens and what it was asked; UDP and TCP."""

    address: Address
    asked_by_udp: list[bytes] = field(default_factory=list)
    asked_by_tcp: list[bytes] = field(default_factory=list)


def srv_record(
    priority: int, weight: int, port: int, target: bytes, *, owner: bytes = b"\xc0\x0c"
) -> bytes:
    """Return one SRV record; `target` as it goes on the wire, `owner` a pointer to the question."""
    content = struct.pack("!HHH", priority, weight, port) + target
    return owner + struct.pack("!HHIH", 33, 1, 60, len(content)) + content


def wire_name(name: str) -> bytes:
    """Return a name as it goes on the wire, without pointers."""
    labels = [label.encode() for label in name.split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def reply_to(
    question: bytes, records: Sequence[bytes], *, code: int = 0, cut_off: bool = False
) -> bytes:
    """Return the answer with these records."""
    flags = 0x8180 | code | (0x0200 if cut_off else 0)
    return (
        question[:2]
        + struct.pack("!HHHHH", flags, 1, len(records), 0, 0)
        + question[12:]
        + b"".join(records)
    )


@contextmanager
def dns_server(by_udp: Reply, by_tcp: Reply | None = None) -> Iterator[DnsServer]:
    """Run a server until the block ends."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp,
    ):
        port = free_port()
        udp.bind(("127.0.0.1", port))
        tcp.bind(("127.0.0.1", port))
        tcp.listen()
        server = DnsServer(Address(*udp.getsockname()))
        threads = [
            threading.Thread(target=_serve_udp, args=(udp, server, by_udp)),
            threading.Thread(target=_serve_tcp, args=(tcp, server, by_tcp)),
        ]
        for thread in threads:
            thread.start()
        try:
            yield server
        finally:
            # Wake both up with nothing to say.
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
                end.sendto(b"", server.address)
            socket.create_connection(server.address).close()
            for thread in threads:
                thread.join(10)


def _serve_udp(udp: socket.socket, server: DnsServer, reply: Reply) -> None:
    while True:
        question, sender = udp.recvfrom(4096)
        if not question:
            return
        server.asked_by_udp.append(question)
        for packet in reply(question):
            udp.sendto(packet, sender)


def _serve_tcp(tcp: socket.socket, server: DnsServer, reply: Reply | None) -> None:
    while True:
        connection, _ = tcp.accept()
        with connection:
            head = connection.recv(2)
            if not head:
                return
            question = connection.recv(struct.unpack("!H", head)[0])
            server.asked_by_tcp.append(question)
            for packet in reply(question) if reply else ():
                connection.sendall(packet)
