import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.io.discovery.dns_srv import (
    RECORDS_MAX,
    DnsError,
    Srv,
    decode_answer,
    encode_question,
    look_up,
    name_servers,
)
from smg_mesh.swim.messages import Address
from support.mesh.dns_server import dns_server, reply_to, srv_record, wire_name

NAME = "_smg._tcp.example.org"
ID = 4711


def question() -> bytes:
    return encode_question(NAME, ID)


def records(*answers: bytes) -> list[Srv]:
    return list(decode_answer(reply_to(question(), answers), NAME, ID))


# ── Packets ──────────────────────────────────────────────────────────────────


def test_the_question_is_what_the_standard_says() -> None:
    assert question() == (
        b"\x12\x67\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
        b"\x04_smg\x04_tcp\x07example\x03org\x00\x00\x21\x00\x01"
    )


def test_records_come_best_first() -> None:
    found = records(
        srv_record(20, 0, 1, wire_name("c.example.org")),
        srv_record(10, 1, 2, wire_name("b.example.org")),
        srv_record(10, 9, 3, wire_name("a.example.org")),
    )
    assert [one.target for one in found] == ["a.example.org", "b.example.org", "c.example.org"]
    assert found[0] == Srv(10, 9, 3, "a.example.org")


def test_names_may_point_back_into_the_answer() -> None:
    # Byte 22 of the question is where "example.org" starts.
    (found,) = records(srv_record(1, 1, 7946, b"\x01a\xc0\x16"))
    assert found.target == "a.example.org"


def test_other_records_are_skipped() -> None:
    alias = b"\xc0\x0c" + struct.pack("!HHIH", 5, 1, 60, 2) + b"\xc0\x0c"
    assert records(alias, srv_record(1, 1, 1, wire_name("a")))[0].target == "a"


def test_a_service_that_says_it_is_not_there_has_no_records() -> None:
    with pytest.raises(DnsError, match="has no SRV records"):
        records(srv_record(0, 0, 7946, b"\0"), srv_record(0, 0, 0, wire_name("a")))


def test_a_target_that_is_no_name_is_skipped() -> None:
    found = records(
        srv_record(1, 1, 1, b"\x03a\0b\0"),
        srv_record(1, 1, 1, b"\x02\xff\xfe\0"),
        srv_record(1, 1, 1, b"\x02-x\0"),
        srv_record(2, 1, 1, wire_name("a")),
    )
    assert [one.target for one in found] == ["a"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "cut off"),
        (reply_to(question(), [], code=2), "server failure"),
        (reply_to(question(), [], code=3), "no such name"),
        (reply_to(question(), [], code=15), "code 15"),
        (reply_to(encode_question(NAME, 1), []), "another question"),
        (reply_to(encode_question("_x._tcp.example.org", ID), []), "another question"),
        (question(), "another question"),
        (reply_to(question(), [srv_record(1, 1, 1, b"\xc0\x0c")[:-3]]), "longer than"),
        (reply_to(question(), [srv_record(1, 1, 1, wire_name("abc")[:2])]), "cut off"),
        (reply_to(question(), [srv_record(1, 1, 1, b"\xc0\x39")]), "circles"),
    ],
)
def test_a_bad_answer_says_what_is_wrong_with_it(answer: bytes, words: str) -> None:
    with pytest.raises(DnsError, match=words):
        decode_answer(answer, NAME, ID)


@given(st.binary(max_size=600))
def test_any_bytes_are_records_or_an_error(content: bytes) -> None:
    with pytest.raises(DnsError):
        decode_answer(content, NAME, ID)


@given(st.integers(0, 200), st.integers(0, 255), st.integers(0, 200))
def test_a_damaged_answer_is_records_or_an_error(at: int, value: int, end: int) -> None:
    whole = bytearray(
        reply_to(
            question(),
            [srv_record(1, 1, 7946, b"\x01a\xc0\x16"), srv_record(2, 2, 2, wire_name("b.c"))],
        )
    )
    whole[at % len(whole)] = value
    try:
        found = decode_answer(bytes(whole[: max(1, end)]), NAME, ID)
    except DnsError:
        return
    assert 1 <= len(found) <= 2


def test_an_answer_of_thousands_gives_a_few() -> None:
    many = [srv_record(1, 1, 1 + n, b"\x01a\xc0\x16") for n in range(1000)]
    assert len(records(*many)) == RECORDS_MAX


@pytest.mark.parametrize(
    "name", ["", "_a..b", "_" + "x" * 63 + ".org", ".".join(["_abcdefg"] * 40)]
)
def test_what_is_no_name_is_never_asked(name: str) -> None:
    with pytest.raises(DnsError, match="is no name"):
        encode_question(name, ID)


# ── Servers ──────────────────────────────────────────────────────────────────

GOOD = srv_record(1, 1, 7946, wire_name("a.example.org"))
FOUND = [Srv(1, 1, 7946, "a.example.org")]


def ask(*servers: Address) -> list[Srv]:
    return list(look_up(NAME, servers, query_id=ID, timeout_s=5))


def test_a_server_is_asked_once_and_believed() -> None:
    with dns_server(lambda q: [reply_to(q, [GOOD])]) as server:
        assert ask(server.address) == FOUND
    assert server.asked_by_udp == [question()]


def test_what_does_not_fit_comes_by_tcp() -> None:
    def whole(q: bytes) -> list[bytes]:
        answer = reply_to(q, [GOOD])
        framed = struct.pack("!H", len(answer)) + answer
        return [framed[:5], framed[5:]]

    with dns_server(lambda q: [reply_to(q, [], cut_off=True)], whole) as server:
        assert ask(server.address) == FOUND
    assert server.asked_by_tcp == [question()]


def test_the_next_server_is_asked_when_one_fails_or_is_silent() -> None:
    with (
        dns_server(lambda q: [reply_to(q, [], code=2)]) as failing,
        dns_server(lambda q: [b"\x00" * 5]) as garbling,
        dns_server(lambda q: [reply_to(q, [GOOD])]) as good,
    ):
        assert ask(failing.address, garbling.address, good.address) == FOUND
    with dns_server(lambda q: []) as silent:
        gone = good.address
        with pytest.raises(DnsError, match=str(gone)):
            look_up(NAME, [silent.address, gone], query_id=ID, timeout_s=0.05)
    assert silent.asked_by_udp


def test_a_name_that_does_not_exist_is_not_asked_for_twice() -> None:
    with (
        dns_server(lambda q: [reply_to(q, [], code=3)]) as first,
        dns_server(lambda q: [reply_to(q, [GOOD])]) as second,
        pytest.raises(DnsError, match="no such name"),
    ):
        ask(first.address, second.address)
    assert second.asked_by_udp == []


def test_a_connection_that_ends_early_is_an_error() -> None:
    with (
        dns_server(lambda q: [reply_to(q, [], cut_off=True)], lambda q: [b"\x01\x00abc"]) as server,
        pytest.raises(DnsError, match="ended early"),
    ):
        ask(server.address)


def test_the_system_says_whom_to_ask(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text(
        "# nameserver 9.9.9.9\nsearch example.org\nnameserver 10.0.0.1\n nameserver fd00::1\n"
        "nameserver nonsense\nnameserver 10.0.0.3\nnameserver 10.0.0.4\n"
    )
    hosts = ["10.0.0.1", "fd00::1", "10.0.0.3"]
    assert name_servers(file) == [Address(host, 53) for host in hosts]
    assert name_servers(tmp_path / "missing") == [Address("127.0.0.1", 53)]
