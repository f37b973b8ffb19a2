import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.rejected import REASONS, Rejected
from smg_mesh.io.security.ring_key import RingKey
from smg_mesh.swim import wire
from smg_mesh.swim.messages import Address, Claim, News, Packet, Ping, Rank
from support.mesh.mesh_packets import claims, packets
from support.tools.example_counts import example_count

KEY = RingKey(bytes(range(32)))
SAMPLE = wire.encode(
    Packet(
        wire.sender_tag("a"),
        1_720_000_000_000 << 16,
        7,
        bytes(range(16)),
        Ping(2**63, "b", 5, Claim("b", 5, 1, Rank.SUSPECT, accuser="a")),
        (Claim("c", 2**60, 3, Rank.ALIVE, Address("10.0.0.3", 7946), b"\x81\xa1v\x01"),),
        (News("d", "load", "x/1", 9, bytes(40)),),
    )
)


def rings(*, sealed: bool) -> tuple[Keyring, Keyring]:
    keys = (KEY,) if sealed else ()
    return Keyring(keys, "blue"), Keyring(keys, "blue")


def reason_or_none(keyring: Keyring, datagram: bytes) -> str | None:
    try:
        keyring.open(datagram)
    except Rejected as error:
        return error.reason
    return None


def outcome(data: bytes) -> Packet | str:
    """The packet, or the word; any other exception is a failure."""
    try:
        packet = wire.decode(data)
    except wire.WireError as error:
        return error.reason
    assert wire.encode(packet) == data
    return packet


@given(packets())
def test_a_packet_comes_back_as_it_was_sent(packet: Packet) -> None:
    data = wire.encode(packet)
    assert wire.decode(data) == packet
    assert wire.header(data).boot == packet.boot
    assert type(wire.decode(data).message) is type(packet.message)


@given(st.lists(claims, max_size=20))
def test_rows_come_back_as_they_were_sent(rows: list[Claim]) -> None:
    assert wire.decode_claims(wire.encode_claims(rows)) == rows


@given(packets())
@settings(max_examples=30)
def test_a_packet_that_ends_early_is_none(packet: Packet) -> None:
    data = wire.encode(packet)
    assert all(isinstance(outcome(data[:length]), str) for length in range(len(data)))


@given(packets(), packets(), st.binary(max_size=40))
def test_nothing_may_follow_a_packet(one: Packet, other: Packet, more: bytes) -> None:
    data = wire.encode(one)
    assert isinstance(outcome(data + wire.encode(other)), str)
    assert isinstance(outcome(data + wire.encode(other)[32:]), str)
    assert not more or isinstance(outcome(data + more), str)


@given(st.binary(max_size=1500))
@settings(max_examples=example_count(1000))
def test_any_bytes_give_a_packet_or_a_refusal(data: bytes) -> None:
    outcome(data)
    outcome(SAMPLE[:32] + data)


_msgpack = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.binary()
    | st.text(max_size=9)
    | st.sampled_from(["a", "b", "10.0.0.1", bytes(16), 0, 1, 2, 7946]),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=40,
)


@given(st.lists(_msgpack, min_size=4, max_size=6) | _msgpack)
@settings(max_examples=example_count(200))
def test_any_message_of_any_shape_gives_a_packet_or_a_refusal(body: object) -> None:
    outcome(SAMPLE[:32] + msgspec.msgpack.encode(body))


@given(packets(), st.data())
def test_a_spoilt_packet_is_refused_or_has_user_text_lawful(
    packet: Packet, data: st.DataObject
) -> None:
    spoilt = bytearray(wire.encode(packet))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(32, len(spoilt) - 1))
        spoilt[at] = data.draw(st.integers(0, 255))
    outcome(bytes(spoilt))


@given(claims)
def test_rows_that_end_early_or_go_on_are_refused(claim: Claim) -> None:
    rows = wire.encode_claims([claim])
    for bad in (*(rows[:length] for length in range(len(rows))), rows + rows, rows + b"\xc0"):
        with pytest.raises(wire.WireError):
            wire.decode_claims(bad)


@pytest.mark.parametrize("sealed", [True, False])
def test_no_single_bit_of_a_datagram_may_change(sealed: bool) -> None:
    ours, theirs = rings(sealed=sealed)
    datagram = ours.seal(SAMPLE)
    for bit in range(8 * len(datagram)):
        changed = bytearray(datagram)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Rejected):
            theirs.open(bytes(changed))
    assert theirs.open(datagram) == SAMPLE


@pytest.mark.parametrize("sealed", [True, False])
def test_a_datagram_may_not_end_early_or_go_on(sealed: bool) -> None:
    ours, theirs = rings(sealed=sealed)
    datagram, other = ours.seal(SAMPLE), ours.seal(SAMPLE)
    for bad in (*(datagram[:length] for length in range(len(datagram))), datagram + other):
        with pytest.raises(Rejected):
            theirs.open(bad)
    assert theirs.open(datagram) == theirs.open(other) == SAMPLE


@given(st.binary(max_size=1500), st.booleans())
@settings(max_examples=example_count(500))
def test_any_bytes_are_refused_by_a_ring(datagram: bytes, sealed: bool) -> None:
    _, theirs = rings(sealed=sealed)
    start = SAMPLE[:3] + bytes([not sealed]) + (KEY.id if sealed else bytes(4))
    for forged in (datagram, start + datagram):
        with pytest.raises(Rejected) as caught:
            theirs.open(forged)
        assert caught.value.reason in REASONS
    assert theirs.senders() == 0


@given(packets(), st.booleans())
def test_what_is_sealed_opens_as_it_was_and_once(packet: Packet, sealed: bool) -> None:
    ours, theirs = rings(sealed=sealed)
    data = wire.encode(packet)
    datagram = ours.seal(data)
    assert theirs.open(datagram) == data
    with pytest.raises(Rejected, match="replay"):
        theirs.open(datagram)


@given(st.lists(st.integers(0, 39), max_size=200))
def test_in_any_order_and_number_each_datagram_counts_once(order: list[int]) -> None:
    ours, theirs = rings(sealed=True)
    datagrams = [ours.seal(SAMPLE) for _ in range(40)]
    outcomes = [reason_or_none(theirs, datagrams[i]) for i in order]
    first = [i not in order[:at] for at, i in enumerate(order)]
    assert outcomes == [None if fresh else "replay" for fresh in first]
