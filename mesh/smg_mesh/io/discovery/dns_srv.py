"""DNS SRV lookup (RFC 2782): asks the system's name servers, since
`getaddrinfo` cannot look these up.

Only what that takes of RFC 1035 and RFC 2782: one question over UDP, over TCP if the answer was cut
off, the next server if one is silent. Whatever bytes come back give records or a DnsError.
"""

import re
import socket
import struct
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from smg_mesh.io.discovery.host_address import HOST_NAME, numeric_host
from smg_mesh.swim.messages import Address

SERVERS_MAX: Final = 3
"""As many as the C library asks."""
RECORDS_MAX: Final = 64
_QUESTION: Final = struct.Struct("!HH")
_HEADER: Final = struct.Struct("!HHHHHH")
_RECORD: Final = struct.Struct("!HHIH")
_SRV: Final = struct.Struct("!HHH")
_TYPE_SRV: Final = 33
_CLASS_IN: Final = 1
_POINTERS_MAX: Final = 32
_ANSWER_RECORDS_MAX: Final = 256
_CUT_OFF: Final = 0x0200
_CODES: Final = {1: "format error", 2: "server failure", 3: "no such name", 5: "refused"}


class DnsError(Exception):
    """No records, for the reason that the message gives."""


class Srv(NamedTuple):
    """One instance of a service."""

    priority: int
    weight: int
    port: int
    target: str


def name_servers(path: Path = Path("/etc/resolv.conf")) -> Sequence[Address]:
    """Return the servers that the system is told to ask, at most three; this machine if none is named."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    hosts = re.findall(r"^\s*nameserver\s+(\S+)", text, re.MULTILINE)
    numeric = [host for host in map(numeric_host, hosts) if host is not None]
    return [Address(host, 53) for host in numeric[:SERVERS_MAX]] or [Address("127.0.0.1", 53)]


def look_up(
    name: str, servers: Sequence[Address], *, query_id: int, timeout_s: float
) -> Sequence[Srv]:
    """Return the SRV records of `name`, best first. Blocks up to `timeout_s` per server and protocol.

    DnsError if no server has any; an answer that the name does not exist is believed at once.
    """
    question = encode_question(name, query_id)
    trouble = "no name server"
    for server in servers[:SERVERS_MAX]:
        try:
            answer = _ask_by_udp(question, server, timeout_s)
            if struct.unpack_from("!H", answer, 2)[0] & _CUT_OFF:
                answer = _ask_by_tcp(question, server, timeout_s)
            records = decode_answer(answer, name, query_id)
        except OSError as error:
            trouble = f"{server}: {str(error) or 'no answer'}"
        except _ServerTroubleError as error:
            trouble = f"{server}: {error}"
        else:
            return records
    raise DnsError(f"{name}: {trouble}")


def encode_question(name: str, query_id: int) -> bytes:
    """Return the packet that asks for the SRV records of `name`; DnsError if it is no name."""
    labels = name.rstrip(".").encode("ascii", "replace").split(b".")
    if not all(1 <= len(label) <= 63 for label in labels) or sum(map(len, labels)) > 250:
        raise DnsError(f"{name!r} is no name")
    head = _HEADER.pack(query_id, 0x0100, 1, 0, 0, 0)  # recursion desired
    path = b"".join(bytes([len(label)]) + label for label in labels)
    return head + path + b"\0" + _QUESTION.pack(_TYPE_SRV, _CLASS_IN)


def decode_answer(answer: bytes, name: str, query_id: int) -> Sequence[Srv]:
    """Return the records, best first: at least one, at most 64. DnsError otherwise."""
    try:
        return _decode(answer, name, query_id)
    except (struct.error, IndexError) as error:
        raise _ServerTroubleError("the answer is cut off or garbled") from error


class _ServerTroubleError(DnsError):
    """Another server may know."""


def _decode(answer: bytes, name: str, query_id: int) -> Sequence[Srv]:
    number, flags, questions, answers, _, _ = _HEADER.unpack_from(answer)
    code = flags & 0xF
    if number != query_id or not flags & 0x8000 or questions != 1:
        raise _ServerTroubleError("the answer is to another question")
    asked, at = _name(answer, _HEADER.size)
    if asked.lower() != name.rstrip(".").lower():
        raise _ServerTroubleError("the answer is to another question")
    if code == 3:
        raise DnsError(f"{name}: no such name")
    if code:
        raise _ServerTroubleError(_CODES.get(code, f"code {code}"))
    at += _QUESTION.size
    records = []
    for _ in range(min(answers, _ANSWER_RECORDS_MAX)):
        _, at = _name(answer, at)
        kind, kind_class, _, length = _RECORD.unpack_from(answer, at)
        at += _RECORD.size
        if at + length > len(answer):
            raise _ServerTroubleError("a record is longer than the answer")
        if kind == _TYPE_SRV and kind_class == _CLASS_IN:
            target, _ = _name(answer, at + _SRV.size)
            priority, weight, port = _SRV.unpack_from(answer, at)
            record = Srv(priority, weight, port, target)
            # A target of "." says: decidedly not available here.
            if record.port and HOST_NAME.fullmatch(record.target):
                records.append(record)
        at += length
    if not records:
        raise DnsError(f"{name}: has no SRV records")
    return sorted(set(records), key=lambda one: (one.priority, -one.weight, one))[:RECORDS_MAX]


def _name(answer: bytes, at: int) -> tuple[str, int]:
    """Return the name at `at` and where the next field starts; pointers are followed a few times."""
    labels: list[str] = []
    after = -1
    pointers = 0
    while True:
        length = answer[at]
        if length == 0:
            break
        if length >= 0xC0:
            after = at + 2 if after < 0 else after
            at = (length & 0x3F) << 8 | answer[at + 1]
            pointers += 1
            if pointers > _POINTERS_MAX:
                raise _ServerTroubleError("a name points in circles")
            continue
        if length > 63 or len(labels) > 127:
            raise _ServerTroubleError("a name is too long")
        label = answer[at + 1 : at + 1 + length]
        if len(label) < length:
            raise _ServerTroubleError("a name is cut off")
        labels.append(label.decode("ascii", "backslashreplace"))
        at += 1 + length
    return ".".join(labels), (at + 1 if after < 0 else after)


def _ask_by_udp(question: bytes, server: Address, timeout_s: float) -> bytes:
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_DGRAM)) as door:
        door.settimeout(timeout_s)
        door.connect((server.host, server.port))  # the kernel drops what others send
        door.send(question)
        answer = door.recv(4096)
    if len(answer) < _HEADER.size:
        raise _ServerTroubleError("the answer is cut off or garbled")
    return answer


def _ask_by_tcp(question: bytes, server: Address, timeout_s: float) -> bytes:
    with closing(socket.create_connection((server.host, server.port), timeout_s)) as door:
        door.sendall(struct.pack("!H", len(question)) + question)
        length = struct.unpack("!H", _read(door, 2))[0]
        return _read(door, length)


def _read(door: socket.socket, length: int) -> bytes:
    content = b""
    while len(content) < length:
        piece = door.recv(length - len(content))
        if not piece:
            raise _ServerTroubleError("the connection ended early")
        content += piece
    return content
