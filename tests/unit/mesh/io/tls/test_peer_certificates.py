"""Who is let into a stream, and who is not: certificates made from the keyring, and none at all."""

import pytest

from smg_mesh.io.streams import AskError, StreamError
from smg_mesh.io.tls import DerivedMaterial, dns_name, mesh_name
from support.mesh.mesh_streams import Node, Ring, derived, key, plain, up
from support.state.exchanges import claims

# Names that a node may have and DNS would rather not.
ODD = [
    "a_b",
    "_a",
    "a_",
    "-",
    "_",
    "a..b",
    ".a",
    "a.",
    "..",
    "10.0.0.1",
    "1",
    "1.2",
    "0x7f",
    "x" * 63,
    "mesh.test",
]


@pytest.mark.parametrize("name", ["node-1", "node.1.example", *ODD])
async def test_every_name_a_node_may_have_is_verified_both_ways(name: str) -> None:
    odd, usual = Node(name, derived(name), claims(1, "l")), Node("b", derived("b"), claims(1, "r"))
    async with up(odd, usual):
        assert (await odd.exchange_with(usual)).name == "b"
        assert (await usual.exchange_with(odd)).name == name


@pytest.mark.parametrize(
    "label", ["default", "prod.eu_1", "Prod", "with space", "…", ".", "mesh.test", "x" * 300]
)
async def test_every_label_is_verified(label: str) -> None:
    a = Node("a", derived("a", label=label), claims(1, "l"), label=label)
    b = Node("b", derived("b", label=label), claims(1, "r"), label=label)
    async with up(a, b):
        assert (await a.exchange_with(b, name=None)).name == "b"


def test_different_names_stand_in_certificates_as_different_names() -> None:
    names = ["node-1", "Prod", "prod", *ODD]
    written = [dns_name(name) for name in names]
    assert len({name.lower().rstrip(".") for name in written}) == len(names)
    assert dns_name("node-1") == "node-1"
    assert mesh_name("default") == "mesh.default"
    assert len(mesh_name("x" * 300)) < 64


@pytest.mark.parametrize(("number", "label"), [(2, "test"), (1, "other")], ids=["key", "label"])
async def test_without_a_common_key_and_label_nobody_is_let_in(number: int, label: str) -> None:
    a = Node("a", derived("a", key(1)), claims(1, "l"))
    b = Node("b", derived("b", key(number), label=label), claims(1, "r"))
    async with up(a, b):
        with pytest.raises(StreamError) as raised:
            await a.exchange_with(b)
        assert raised.value.reason == "key"
        assert f"peer at {b.address} does not share our mesh key or label" in str(raised.value)
        assert not await a.client.ping(b.address, "b", 1, deadline_ms=5000)
        with pytest.raises(AskError) as refused:
            await a.client.ask(b.address, "b", "t", b"", deadline_s=5)
        assert refused.value.code == "key"
    assert a.counts == {("stream_failed", "key"): 3}
    assert a.learned_rows == b.learned_rows == []
    assert not b.counts


async def test_a_plain_caller_is_not_let_into_a_secure_node() -> None:
    a, b = Node("a", plain("a"), claims(1, "l")), Node("b", derived("b"), claims(1, "r"))
    async with up(a, b):
        with pytest.raises(StreamError, match="only one side speaks TLS") as raised:
            await a.exchange_with(b)
        assert raised.value.reason == "unreachable"
        assert not await a.client.ping(b.address, "b", 1, deadline_ms=5000)
    assert not b.counts


async def test_a_secure_caller_does_not_talk_to_a_plain_node() -> None:
    a, b = Node("a", derived("a"), claims(1, "l")), Node("b", plain("b"), claims(1, "r"))
    async with up(a, b):
        with pytest.raises(StreamError, match="does not speak TLS") as raised:
            await a.exchange_with(b)
    assert raised.value.reason == "plain"
    assert not b.counts


async def test_another_member_than_expected_is_not_talked_to() -> None:
    a, b = Node("a", derived("a"), claims(1, "l")), Node("b", derived("b"), claims(1, "r"))
    async with up(a, b):
        with pytest.raises(StreamError, match=rf"{b.address} does not prove to be c") as raised:
            await a.exchange_with(b, name="c")
        assert not await a.client.ping(b.address, "c", 1, deadline_ms=5000)
    assert raised.value.reason == "name"
    assert not b.counts


async def test_a_caller_with_another_name_than_its_certificate_teaches_nothing() -> None:
    """The handshake is good, the greeting is a lie."""
    liar = Node("victim", derived("liar"), claims(1, "l"))
    b = Node("b", derived("b"), claims(1, "r"), replies=lambda *_: b"told")
    async with up(liar, b):
        with pytest.raises(StreamError, match="says it is victim") as raised:
            await liar.exchange_with(b)
        assert raised.value.reason == "refused"
        assert b.counts["stream_refused", "name"] == 1
        assert b.learned_rows == []
    assert liar.learned_rows == []


async def test_a_question_in_the_name_of_another_is_refused() -> None:
    liar = Node("liar", derived("liar"))
    b = Node("b", derived("b"), replies=lambda *_: b"told")
    vars(liar.credentials)["name"] = "victim"
    async with up(liar, b):
        with pytest.raises(AskError, match="does not carry victim") as raised:
            await liar.client.ask(b.address, "b", "t", b"", deadline_s=5)
    assert raised.value.code == "refused"


async def test_nobody_passes_for_all_members() -> None:
    """Every certificate carries the mesh's name: it must not do as somebody's."""
    liar = Node("mesh.test", derived("liar"), claims(1, "l"))
    b = Node("b", derived("b"), claims(1, "r"))
    async with up(liar, b):
        with pytest.raises(StreamError, match=r"says it is mesh\.test"):
            await liar.exchange_with(b)
    assert b.learned_rows == []


# ── When the ring changes ────────────────────────────────────────────────────


def test_the_same_ring_is_the_same_material() -> None:
    ring = Ring([key(1)])
    material = DerivedMaterial(ring, name="a", label="test")
    first = material.read()
    assert material.read() is first
    ring.held.append(key(2))
    assert material.read() is not first
    assert key(1).hex().encode() not in first.key
    assert "PRIVATE" not in repr(first)


async def test_nodes_talk_at_every_step_of_a_rotation_made_one_node_at_a_time() -> None:
    old, new = key(1), key(2)
    rings = [Ring([old]), Ring([old])]
    a = Node("a", derived("a", ring=rings[0]), claims(1, "l"))
    b = Node("b", derived("b", ring=rings[1]), claims(1, "r"))
    async with up(a, b):
        for step in ([old], [old, new], [new, old], [new]):
            for ring in rings:
                ring.held = list(step)
                assert (await a.exchange_with(b)).name == "b"
                assert (await b.exchange_with(a)).name == "a"
                assert a.client.open_channels == b.client.open_channels == 1
    assert not [detail for kind, detail in (*a.counts, *b.counts) if kind == "stream_failed"]


@pytest.mark.parametrize("mine", [(1,), (2,), (3,), (2, 1), (1, 3), (1, 4), (4, 5, 2)])
@pytest.mark.parametrize("theirs", [(3, 2, 1), (1, 2, 3), (3, 1), (2, 3, 4, 1), (6,)])
async def test_one_common_key_is_enough_whichever_is_primary_where(
    mine: tuple[int, ...], theirs: tuple[int, ...]
) -> None:
    a = Node("a", derived("a", *map(key, mine)), claims(1, "l"))
    b = Node("b", derived("b", *map(key, theirs)), claims(1, "r"))
    common = [number for number in mine if number in theirs]
    async with up(a, b):
        for caller, other in ((a, b), (b, a)):
            if common:
                assert (await caller.exchange_with(other)).name == other.name
            else:
                with pytest.raises(StreamError) as raised:
                    await caller.exchange_with(other)
                assert raised.value.reason == "key"


async def test_a_removed_key_opens_no_new_stream() -> None:
    ring = Ring([key(2), key(1)])
    member = Node("a", derived("a", ring=ring), claims(1, "l"))
    sleeper = Node("b", derived("b", key(1)), claims(1, "r"))
    async with up(member, sleeper):
        assert (await sleeper.exchange_with(member, name=None)).name == "a"
        ring.held = [key(2)]
        with pytest.raises(StreamError, match="its key file needs the new one") as raised:
            await member.exchange_with(sleeper)
        assert raised.value.reason == "key"


async def test_a_stream_that_is_open_survives_a_change_of_the_ring() -> None:
    ring = Ring([key(1)])
    a = Node("a", derived("a", ring=ring), claims(3000, "l"))
    b = Node("b", derived("b", key(1), key(2)), claims(3000, "r"))
    async with up(a, b):
        learned: list[object] = []

        def change(rows: tuple[object, ...]) -> None:
            ring.held = [key(2), key(1)]
            learned.extend(rows)
            assert a.credentials.version() == 2

        await a.client.exchange(
            b.address, "b", a.machine(opener=True), change, turns=a.turns, deadline_ms=10_000
        )
        assert learned == b.rows
        assert b.learned_rows == a.rows
        assert (await a.exchange_with(b)).name == "b"
        assert a.client.open_channels == 1
