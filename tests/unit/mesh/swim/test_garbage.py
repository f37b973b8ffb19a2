"""Whatever arrives: no exception, and no change but by what is well formed."""

from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.swim.effects import Note
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
from smg_mesh.swim.wire import encode, sender_tag
from support.mesh.swim_stage import Actor, Stage

SENDER = Address("10.0.1.1", 7946)
NAMES = ["me", "a", "b", "c"]
BOOTS = st.sampled_from([0, 1, 2, 99, 100, 101, 2**63, 2**64 - 1])
INCARNATIONS = st.sampled_from([0, 1, 2, 2**32 - 1])
ADDRESSES = st.sampled_from([SENDER, Address("10.0.0.1", 7946), Address("::1", 1)])
CLAIMS = st.builds(
    Claim,
    st.sampled_from(NAMES),
    BOOTS,
    INCARNATIONS,
    st.sampled_from(Rank),
    st.one_of(st.none(), ADDRESSES),
    st.one_of(st.none(), st.sampled_from([b"", b"m"])),
    st.sampled_from(["", *NAMES]),
)
NONCES = st.integers(0, 3)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Ping, NONCES, st.sampled_from(NAMES), BOOTS, st.one_of(st.none(), CLAIMS)),
    st.builds(Ack, NONCES),
    st.builds(Nack, NONCES),
    st.builds(PingRequest, NONCES, st.sampled_from(NAMES), BOOTS, ADDRESSES),
    st.just(Gossip()),
    st.builds(Accusation, CLAIMS),
)
PACKETS = st.builds(
    Packet,
    st.sampled_from([sender_tag(name) for name in NAMES]),
    BOOTS,
    INCARNATIONS,
    st.sampled_from([bytes(16), b"x" * 16]),
    MESSAGES,
    st.lists(CLAIMS, max_size=3).map(tuple),
    st.lists(
        st.builds(News, st.sampled_from(NAMES), st.just("k"), st.just(""), NONCES, st.just(b""))
    ).map(lambda news: tuple(news[:2])),
)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_packet_change_nothing_and_are_counted(data: bytes) -> None:
    stage = Stage()
    stage.meet("a")
    rows, digest = stage.swim.rows(), stage.swim.digest()
    effects = stage.swim.handle_datagram(data, SENDER, now_ms=stage.now_ms)
    assert effects == [Note("refused", detail="wire")]
    assert (stage.swim.rows(), stage.swim.digest()) == (rows, digest)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_packet_with_one_byte_changed_raises_nothing(place: int, flip: int) -> None:
    stage = Stage()
    (a,) = stage.meet("a")
    data = bytearray(a.says(Hello(a.claim(), True), rumors=[a.claim(Rank.DEAD, accuser="b")]))
    data[place % len(data)] ^= flip
    stage.did(stage.swim.handle_datagram(bytes(data), a.address, now_ms=stage.now_ms))
    stage.run(100)


@given(st.lists(st.tuples(PACKETS, st.integers(0, 700)), max_size=12))
def test_any_history_of_packets_keeps_what_must_hold(history: list[tuple[Packet, int]]) -> None:
    stage = Stage()
    stage.meet("a", "b")
    orders: dict[str, tuple[int, int, int]] = {}
    mine = (0, 0)
    for packet, wait_ms in history:
        effects = stage.swim.handle_datagram(encode(packet), SENDER, now_ms=stage.now_ms)
        stage.did(effects)
        stage.run(wait_ms)
        rows = stage.swim.rows()
        held = {member.name: member for member in stage.swim.members()[1:]}
        for name, member in held.items():
            order = (member.boot, member.incarnation, member.rank)
            assert order >= orders.get(name, order)
            orders[name] = order
        assert (stage.swim.boot, stage.swim.incarnation) >= mine
        mine = (stage.swim.boot, stage.swim.incarnation)
        assert len({row.name for row in rows}) <= len(NAMES)
    stage.run(3_000)


@given(st.lists(CLAIMS, max_size=12))
def test_any_rows_of_an_exchange_are_taken(rows: list[Claim]) -> None:
    stage = Stage()
    stage.meet("a", "b")
    stage.converse("a", rows)
    stage.run(3_000)
    assert [row.name for row in stage.swim.rows()] == sorted(row.name for row in stage.swim.rows())


def test_a_repeated_packet_is_harmless() -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    stage.run(3_000)
    data = [
        a.says(Hello(a.claim(), False), digest=stage.digest16()),
        a.says(Gossip(), rumors=[b.claim(Rank.SUSPECT, accuser="a")], digest=stage.digest16()),
        a.says(Ack(1), digest=stage.digest16()),
        a.says(Nack(1), digest=stage.digest16()),
    ]
    for packet in data:
        stage.swim.handle_datagram(packet, a.address, now_ms=stage.now_ms)
    rows = stage.swim.rows()
    for packet in data * 3:
        stage.did(stage.swim.handle_datagram(packet, a.address, now_ms=stage.now_ms))
    assert stage.swim.rows() == rows
    assert isinstance(a, Actor)
