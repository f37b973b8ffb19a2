"""The door to name servers, in front of servers on the loopback that say what they like."""

import asyncio
import socket
from collections.abc import Sequence
from random import Random
from struct import pack

import dns.message
import dns.rcode
import dns.rrset
import pytest
from dns._asyncio_backend import _DatagramProtocol

from smg_node.discovery.dns.answers import Addresses, Answer, RecordKind, UnansweredError
from smg_node.discovery.dns.resolver import DnsResolver
from support.mesh.dns_server import Reply, dns_server

NAME = "h.example"


def saying(*lines: str, code: int = 0, cut_off: bool = False) -> Reply:
    """Return a server that answers each question with these records: `NAME TTL KIND CONTENT`."""

    def reply(question: bytes) -> Sequence[bytes]:
        response = dns.message.make_response(dns.message.from_wire(question))
        response.set_rcode(dns.rcode.Rcode(code))
        for line in lines:
            name, ttl, kind, content = line.split(" ", 3)
            response.answer.append(dns.rrset.from_text(name, int(ttl), "IN", kind, content))
        if cut_off:
            response.flags |= dns.flags.TC
        return [response.to_wire()]

    return reply


def with_length(reply: Reply) -> Reply:
    """Return a server's answers as they go by TCP."""
    return lambda question: [pack("!H", len(one)) + one for one in reply(question)]


async def asked(
    by_udp: Reply, by_tcp: Reply | None = None, *, kind: RecordKind = "A", timeout_s: float = 20.0
) -> Answer:
    with dns_server(by_udp, by_tcp) as server:
        host, port = server.address
        door = DnsResolver([f"{host}:{port}"], timeout_s=timeout_s, server_timeout_s=timeout_s)
        return await door.ask(NAME, kind)


async def test_an_alias_that_leads_elsewhere_is_followed_and_its_time_counts() -> None:
    def reply(question: bytes) -> Sequence[bytes]:
        name = dns.message.from_wire(question).question[0].name.to_text()
        lines = {"h.example.": "h.example. 3 CNAME other.", "other.": "other. 9 A 10.0.0.1"}
        return saying(lines[name])(question)

    assert await asked(reply) == Answer(3, addresses=("10.0.0.1",))


async def test_aliases_without_end_are_no_answer() -> None:
    def reply(question: bytes) -> Sequence[bytes]:
        name = dns.message.from_wire(question).question[0].name.to_text()
        return saying(f"{name} 5 CNAME x{name}")(question)

    with pytest.raises(UnansweredError, match=r"h\.example is an alias of an alias, more than 8"):
        await asked(reply)
    with pytest.raises(UnansweredError):
        await asked(saying("h.example. 5 CNAME g.example.", "g.example. 5 CNAME h.example."))


@pytest.mark.parametrize(("code", "said"), [(2, "SERVFAIL"), (5, "REFUSED"), (4, "NOTIMP")])
async def test_failures_of_servers_are_no_answers(code: int, said: str) -> None:
    with pytest.raises(UnansweredError, match=said):
        await asked(saying(code=code))


def refers(question: bytes) -> Sequence[bytes]:
    response = dns.message.make_response(dns.message.from_wire(question))
    response.authority.append(dns.rrset.from_text("example.", 9, "IN", "NS", "ns.example."))
    return [response.to_wire()]


async def test_a_server_that_only_says_who_else_knows_is_passed_over() -> None:
    with pytest.raises(UnansweredError, match="answered that others know example, and does not"):
        await asked(refers)
    good = saying("h.example. 5 A 10.0.0.1")
    with dns_server(refers) as first, dns_server(good) as second:
        door = DnsResolver([str(first.address), str(second.address)], timeout_s=20.0)
        assert (await door.ask(NAME, "A")).addresses == ("10.0.0.1",)
    cut_off = saying(cut_off=True)
    with pytest.raises(UnansweredError, match="others know"):
        await asked(cut_off, with_length(refers))


async def test_an_answer_with_nothing_and_without_a_time_is_believed_for_five_minutes() -> None:
    assert await asked(saying()) == Answer(300)
    assert await asked(saying(code=3)) == Answer(300, exists=False)


async def test_what_is_cut_off_is_asked_for_by_tcp() -> None:
    whole = with_length(saying("h.example. 5 A 10.0.0.1"))
    cut_off = saying(cut_off=True)
    assert (await asked(cut_off, whole)).addresses == ("10.0.0.1",)
    with pytest.raises(UnansweredError):
        await asked(cut_off, timeout_s=0.5)  # nobody listens there
    with pytest.raises(UnansweredError):
        await asked(cut_off, lambda question: [b"nonsense"])
    with pytest.raises(UnansweredError):
        await asked(cut_off, lambda question: [])


async def test_what_answers_another_question_is_not_taken() -> None:
    def reply(question: bytes) -> Sequence[bytes]:
        (good,) = saying("h.example. 5 A 10.0.0.1")(question)
        (bad,) = saying("h.example. 5 A 10.6.6.6")(question)
        return [b"", b"nonsense", bytes([bad[0] ^ 1]) + bad[1:], good]

    assert (await asked(reply)).addresses == ("10.0.0.1",)


async def test_records_of_services() -> None:
    answer = await asked(
        saying("h.example. 5 SRV 1 2 3 E1.Example.", "h.example. 5 SRV 0 0 0 ."), kind="SRV"
    )
    found = [(one.priority, one.weight, one.port, one.target) for one in answer.services]
    assert sorted(found) == [(0, 0, 0, ""), (1, 2, 3, "e1.example")]


async def test_addresses_that_came_along_are_those_of_the_internet() -> None:
    def reply(question: bytes) -> Sequence[bytes]:
        response = dns.message.from_wire(saying("h.example. 5 SRV 0 0 1 e1.")(question)[0])
        for name, kind, content in (("e1.", "IN", "10.0.0.1"), ("e2.", "CLASS5", "\\# 4 0a000002")):
            response.additional.append(dns.rrset.from_text(name, 7, kind, "A", content))
        return [response.to_wire()]

    answer = await asked(reply, kind="SRV")
    assert dict(answer.additional) == {"e1": Addresses(("10.0.0.1",), 7)}


async def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with pytest.raises(
            UnansweredError, match=rf"no answer within 0\.1 s from 127.0.0.1:{port}"
        ):
            await DnsResolver([f"127.0.0.1:{port}"], timeout_s=0.1).ask(NAME, "A")


@pytest.mark.parametrize("name", ["", "a..b", "x" * 64, "a." * 200, "ä" * 60, "\ud800", "a\0b"])
async def test_what_is_no_name_is_no_answer(name: str) -> None:
    with pytest.raises(UnansweredError):
        await asked_for(name)


async def asked_for(name: str) -> Answer:
    with dns_server(saying(code=5)) as server:
        host, port = server.address
        return await DnsResolver([f"{host}:{port}"], timeout_s=20.0).ask(name, "A")


async def test_any_bytes_are_an_answer_or_that_error() -> None:
    chance = Random(7)
    (good,) = saying(
        "h.example. 5 SRV 1 2 3 e1.example.", "e1.example. 5 A 10.0.0.1", "h.example. 5 CNAME a."
    )(dns.message.make_query("h.example.", "SRV").to_wire())

    def reply(question: bytes) -> Sequence[bytes]:
        raw = bytearray(good)
        for _ in range(chance.randint(0, 6)):
            raw[chance.randrange(12, len(raw))] = chance.randrange(256)
        return [question[:2] + bytes(raw[2 : chance.randint(12, len(raw))])]

    cut_off = saying(cut_off=True)
    outcomes = {"answered": 0, "not": 0}
    with dns_server(cut_off, with_length(reply)) as server:
        host, port = server.address
        door = DnsResolver([f"{host}:{port}"], timeout_s=5.0)
        for _ in range(150):
            try:
                await door.ask(NAME, "SRV")
                outcomes["answered"] += 1
            except UnansweredError:
                outcomes["not"] += 1
    assert min(outcomes.values()) > 0, outcomes


@pytest.mark.parametrize("turns", range(8))
async def test_who_is_cancelled_while_an_answer_comes_ends(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, asking = asyncio.get_running_loop(), list[asyncio.Task[None]]()
    went_on = list[int]()

    def cancel(left: int) -> None:
        if left:
            loop.call_soon(cancel, left - 1)
        else:
            asking[0].cancel()

    take = _DatagramProtocol.datagram_received

    def received(self: _DatagramProtocol, data: bytes, address: object) -> None:
        take(self, data, address)  # type: ignore[no-untyped-call]  # the library's
        cancel(turns)

    monkeypatch.setattr(_DatagramProtocol, "datagram_received", received)

    async def ask_twice(door: DnsResolver) -> None:
        await door.ask(NAME, "A")
        await asyncio.sleep(2.0)
        went_on.append(turns)

    with dns_server(saying("h.example. 5 A 10.0.0.1")) as server:
        door = DnsResolver([str(server.address)], timeout_s=20.0, server_timeout_s=20.0)
        async with asyncio.TaskGroup() as group:
            asking.append(group.create_task(ask_twice(door)))
    assert asking[0].cancelled()
    assert not went_on
