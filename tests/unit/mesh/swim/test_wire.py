import msgspec
import pytest

from smg_mesh.config import META_BYTES_MAX, NEWS_BYTES_MAX
from smg_mesh.swim import wire
from smg_mesh.swim.messages import (
    Accusation,
    Ack,
    Address,
    Claim,
    Gossip,
    Hello,
    Message,
    Nack,
    News,
    Packet,
    Ping,
    PingRequest,
    Rank,
)
from smg_mesh.swim.wire import WireError

BOOT = 1_720_000_000_000 << 16
DIGEST = bytes(range(16))
ALIVE = Claim("b", BOOT, 3, Rank.ALIVE, Address("10.0.0.2", 7946), b"\x80")
SUSPECT = Claim("b", BOOT, 3, Rank.SUSPECT, accuser="c")
GOSSIP = Gossip()
MESSAGES: tuple[Message, ...] = (
    Ping(1, "b", BOOT),
    Ping(2**64 - 1, "b", 0, SUSPECT),
    Ack(7),
    PingRequest(9, "b", BOOT, Address("2001:db8::1", 1)),
    Nack(0),
    GOSSIP,
    Accusation(SUSPECT),
    Hello(msgspec.structs.replace(ALIVE, name="a"), answer=True),
)


def packet_of(
    message: Message = GOSSIP,
    rumors: tuple[Claim, ...] = (),
    news: tuple[News, ...] = (),
) -> Packet:
    return Packet(wire.sender_tag("a"), BOOT, 5, DIGEST, message, rumors, news)


def written(body: object, *, start: bytes = b"SM\1\0" + bytes(4)) -> bytes:
    head = start + wire.sender_tag("a") + BOOT.to_bytes(8, "big") + bytes(8)
    return head + msgspec.msgpack.encode(body)


def refused(data: bytes) -> str:
    with pytest.raises(WireError) as caught:
        wire.decode(data)
    return caught.value.reason


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_every_kind_of_message_comes_back_as_it_was_sent(message: Message) -> None:
    packet = packet_of(message, (ALIVE, SUSPECT), (News("a", "load", "x/1", 4, b"\0"),))
    assert wire.decode(wire.encode(packet)) == packet


def test_every_message_is_tested() -> None:
    assert {type(message) for message in MESSAGES} == set(Message.__args__)


def test_the_header_is_where_others_expect_it() -> None:
    data = wire.encode(packet_of())
    assert data[:32] == (
        b"SM\1\0" + bytes(4) + wire.sender_tag("a") + BOOT.to_bytes(8, "big") + bytes(8)
    )
    assert wire.header(data) == (1, 0, bytes(4), wire.sender_tag("a"), BOOT, 0)


def test_the_header_of_any_version_can_be_read() -> None:
    data = b"SM\x09\x01keyid".ljust(24, b"x")[:24] + (77).to_bytes(8, "big")
    header = wire.header(data)
    assert (header.version, header.flags, header.counter) == (9, 1, 77)
    for broken in (data[:31], b"XX" + data[2:], b""):
        with pytest.raises(WireError):
            wire.header(broken)


def test_the_body_is_a_flat_array_that_other_programs_can_read() -> None:
    body = msgspec.msgpack.decode(wire.encode(packet_of(Ping(1, "b", 2), (SUSPECT,)))[32:])
    assert body == [5, DIGEST, [1, 1, "b", 2, None], [["b", BOOT, 3, 1, None, None, "c"]], []]


def test_a_tag_is_eight_bytes_and_differs_between_names() -> None:
    assert wire.sender_tag("a") == bytes.fromhex("40f89e395b66422f")
    assert wire.sender_tag("a") != wire.sender_tag("b")


def test_sizes_say_what_fits() -> None:
    for message in MESSAGES:
        claims = tuple(msgspec.structs.replace(SUSPECT, name=f"n{i}") for i in range(40))
        news = (News("a", "load", "k", 1, bytes(100)),)
        rumors = sum(map(wire.claim_bytes, claims)) + sum(map(wire.news_bytes, news))
        body = len(wire.encode(packet_of(message, claims, news))) - wire.HEADER_BYTES
        assert body <= wire.message_bytes(message) + rumors <= body + 8


def test_a_packet_that_is_too_large_is_our_own_mistake() -> None:
    fat = msgspec.structs.replace(ALIVE, meta=bytes(META_BYTES_MAX))
    with pytest.raises(AssertionError):
        wire.encode(packet_of(rumors=(fat,) * 3))
    with pytest.raises(AssertionError):
        wire.encode(packet_of(rumors=(SUSPECT,) * 40, news=(News("a", "k", "", 1, b""),) * 30))


@pytest.mark.parametrize(
    "claim",
    [
        msgspec.structs.replace(ALIVE, name=name)
        for name in ("", "A", "a b", "a\n", "ä", "x" * 64, "a/b", "a\0")
    ]
    + [msgspec.structs.replace(SUSPECT, accuser=name) for name in ("A", "x" * 64, "é")]
    + [
        msgspec.structs.replace(ALIVE, address=Address(host, 7946))
        for host in (
            "",
            "host",
            "10.0.0",
            "10.0.0.256",
            "010.0.0.1",
            "fe80::1%eth0",
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "ff02::1",
            "١.١.١.١",
            "1" * 46,
            "localhost",
        )
    ]
    + [msgspec.structs.replace(ALIVE, address=Address("10.0.0.1", port)) for port in (0, 65_536)]
    + [
        msgspec.structs.replace(ALIVE, meta=bytes(META_BYTES_MAX + 1)),
        msgspec.structs.replace(ALIVE, boot=-1),
        msgspec.structs.replace(ALIVE, incarnation=1 << 32),
        msgspec.structs.replace(ALIVE, incarnation=-1),
    ],
    ids=repr,
)
def test_a_claim_that_no_member_can_make_is_refused_wherever_it_stands(claim: Claim) -> None:
    for message in (Ping(1, "b", BOOT, claim), Accusation(claim), Hello(claim, answer=False)):
        assert refused(wire.encode(packet_of(message))) in ("body", "name", "host")
    assert refused(wire.encode(packet_of(rumors=(ALIVE, claim)))) in ("body", "name", "host")
    with pytest.raises(WireError):
        wire.decode_claims(wire.encode_claims([ALIVE, claim]))


@pytest.mark.parametrize(
    "news",
    [
        News("A", "load", "k", 1, b""),
        News("", "load", "k", 1, b""),
        News("a", "", "k", 1, b""),
        News("a", "x" * 33, "k", 1, b""),
        News("a", "Load", "k", 1, b""),
        News("a", "load", "k" * 129, 1, b""),
        News("a", "load", "k\n", 1, b""),
        News("a", "load", "k", -1, b""),
        News("a", "load", "k", 1, bytes(NEWS_BYTES_MAX + 1)),
    ],
    ids=repr,
)
def test_news_that_nobody_can_say_are_refused(news: News) -> None:
    assert refused(wire.encode(packet_of(news=(news,)))) in ("body", "name", "key")


def test_the_longest_of_everything_is_accepted() -> None:
    claim = Claim(
        "n" * 63,
        2**64 - 1,
        2**32 - 1,
        Rank.LEFT,
        Address("2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff", 65_535),
        bytes(META_BYTES_MAX),
        "o" * 63,
    )
    packet = packet_of(Ping(2**64 - 1, "p" * 63, 2**64 - 1, claim))
    assert wire.decode(wire.encode(packet)) == packet
    news = News("n" * 63, "k" * 32, "é" * 128, 2**64 - 1, bytes(NEWS_BYTES_MAX))
    assert wire.decode(wire.encode(packet_of(news=(news,)))).news == (news,)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ([5, DIGEST, [9], [], []], "body"),  # an unknown kind
        ([5, DIGEST, [0], [], []], "body"),
        ([5, DIGEST, [-2, 1], [], []], "body"),
        ([5, DIGEST, [5], []], "body"),  # a field is missing
        ([5, DIGEST, [2], [], []], "body"),
        ([5, DIGEST, [5], [], [], 0], "form"),  # there is one too many
        ([5, DIGEST, [2, 1, 1], [], []], "form"),
        ([5, DIGEST, [5], [["b", BOOT, 3, 1, None, None, "c", 0]], []], "form"),
        ([5, DIGEST, [5], [["b", BOOT, 3, 1]], []], "form"),
        ([5, DIGEST, [1, 1, "b", 2], [], []], "form"),
        ([5, DIGEST[9:], [5], [], []], "body"),
        ([5, DIGEST[1:], [5], [], []], "form"),  # neither with documents nor without
        ([5, DIGEST[:8] + bytes(8), [5], [], []], "form"),  # without, at length
        ([5, DIGEST + b"x", [5], [], []], "body"),
        ([1 << 32, DIGEST, [5], [], []], "body"),
        ([5.0, DIGEST, [5], [], []], "body"),
        ([True, DIGEST, [5], [], []], "body"),
        ([5, DIGEST.decode("latin-1"), [5], [], []], "body"),
        ([5, DIGEST, [5], None, []], "body"),
        ([5, DIGEST, [5], [["b", BOOT, 3, 4, None, None, ""]], []], "body"),  # no such state
        ([5, DIGEST, [5], [[b"b", BOOT, 3, 1, None, None, ""]], []], "body"),
        ([5, DIGEST, [5], [["b", BOOT, 3, 0, ["10.0.0.1"], None, ""]], []], "body"),
        ([5, DIGEST, [5], [["b", BOOT, 3, 0, ["10.0.0.1", 1, 2], None, ""]], []], "body"),
        ([5, DIGEST, [5], [], [["a", "k", "", 1, "text"]]], "body"),
        ([5, DIGEST, [3, 1, "b", 2, ["host", 1]], [], []], "host"),
        ([5, DIGEST, [3, 1, "B", 2, ["10.0.0.1", 1]], [], []], "name"),
        ([5, DIGEST, [1, 1, "B", 2, None], [], []], "name"),
        ({"a": 1}, "body"),
        (None, "body"),
        ([5, DIGEST, [5], [["b", 1, 1, 1, None, None, ""]] * 65, []], "body"),
        (
            [5, DIGEST, [5], [["b", 1, 1, 1, None, None, ""]] * 40, [["a", "k", "", 1, b""]] * 25],
            "rumors",
        ),
    ],
    ids=lambda value: repr(value)[:80],
)
def test_a_body_of_another_form_is_refused(body: object, reason: str) -> None:
    assert refused(written(body)) == reason


def test_one_packet_has_one_encoding() -> None:
    body = wire.encode(packet_of(Ack(1)))[32:]
    assert body[:1] == b"\x95"
    oddly = b"\xdc\x00\x05" + body[1:]  # the same array with a longer head
    assert msgspec.msgpack.decode(oddly) == msgspec.msgpack.decode(body)
    assert refused(written(None)[:32] + oddly) == "form"


@pytest.mark.parametrize(
    "body",
    [
        b"\x95\x05\xc4\x10" + DIGEST + b"\x91\x05" + b"\xdd\xff\xff\xff\xff",
        b"\x95\x05\xc6\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff\x05",
        b"\x95\x05\xc4\x10" + DIGEST + b"\x93\x02\x01" + b"\x91" * 1300,
        b"\x95\x05\xc4\x10" + DIGEST + b"\x91\x05\x91" + b"\x91" * 1300,
        b"\x95\x05\xc4\x10" + DIGEST + b"\x91\x05\x91\x97\xa1\xff",
        b"\x91" * 1352,
        b"\x81" * 1352,
        b"\xc1",
    ],
    ids=lambda body: body[:8].hex(),
)
def test_lengths_depths_and_letters_are_not_trusted(body: bytes) -> None:
    assert refused(written(None)[:32] + body) == "body"


def test_another_size_or_header_is_refused() -> None:
    data = wire.encode(packet_of())
    assert refused(b"") == refused(data[:32]) == refused(data + bytes(1400)) == "size"
    for at in (*range(8), *range(24, 32)):
        changed = bytearray(data)
        changed[at] ^= 1
        assert refused(bytes(changed)) == "header"


def test_a_greeting_introduces_its_sender_in_full() -> None:
    mine = msgspec.structs.replace(ALIVE, name="a")
    for claim in (
        ALIVE,
        msgspec.structs.replace(mine, address=None),
        msgspec.structs.replace(mine, meta=None),
    ):
        assert refused(wire.encode(packet_of(Hello(claim, answer=True)))) == "hello"


def test_rows_come_back_and_are_checked_and_bounded() -> None:
    rows = [msgspec.structs.replace(ALIVE, name=f"n{i}", rank=Rank.DEAD) for i in range(1000)]
    assert wire.decode_claims(wire.encode_claims(rows)) == rows
    assert wire.decode_claims(wire.encode_claims([])) == []
    with pytest.raises(AssertionError):
        wire.encode_claims([*rows, ALIVE])
    for bad in (
        msgspec.msgpack.encode([*rows, ALIVE]),
        wire.encode_claims(rows)[:-1],
        wire.encode_claims(rows) + b"\0",
        b"\xdd\xff\xff\xff\xff",
        b"",
        msgspec.msgpack.encode([["b", BOOT, 3, 1]]),
    ):
        with pytest.raises(WireError):
            wire.decode_claims(bad)


def test_the_same_rumor_is_read_once_and_stays_the_same_value() -> None:
    data = wire.encode(packet_of(rumors=(ALIVE,)))
    assert wire.decode(data).rumors[0] is wire.decode(data).rumors[0]
