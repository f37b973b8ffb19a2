"""Streams over real loopback gRPC: pings, exchanges and questions as they should go."""

import asyncio

import pytest

from smg_mesh.io.streams import AskError, StreamError
from smg_mesh.io.streams.service import PAYLOAD_BYTES_MAX
from smg_mesh.swim.effects import StreamAnswer
from smg_mesh.swim.messages import Address, Claim, Rank
from support.mesh.mesh_streams import Node, derived, plain, up
from support.state.exchanges import claims

MODES = pytest.mark.parametrize("make", [derived, plain], ids=["tls", "plain"])


@MODES
async def test_a_ping_is_answered_by_that_life_of_that_node_only(make: type) -> None:
    a, b = Node("a", make("a")), Node("b", make("b"), boot=7)
    async with up(a, b):
        assert await a.client.ping(b.address, "b", 7, deadline_ms=5000)
        assert await a.client.ping(b.address, "b", 6, deadline_ms=5000) is StreamAnswer.SILENT
        assert not await a.client.ping(b.address, "c", 7, deadline_ms=5000)


async def test_a_ping_to_nobody_is_not_answered_and_counted() -> None:
    a = Node("a", derived("a"))
    async with up(a):
        answer = await a.client.ping(Address("127.0.0.1", 1), "b", 7, deadline_ms=5000)
        assert answer is StreamAnswer.NOBODY  # its host said so
    assert a.counts == {("stream_failed", "nobody"): 1}


@MODES
@pytest.mark.parametrize("counts", [(1, 1), (2000, 2000), (0, 3500)])
async def test_an_exchange_tells_both_sides_all_rows(make: type, counts: tuple[int, int]) -> None:
    a = Node("a", make("a"), claims(counts[0], "l"))
    b = Node("b", make("b"), claims(counts[1], "r"), said={"ring_version": 3})
    async with up(a, b):
        peer = await a.exchange_with(b)
        assert (peer.name, peer.boot, peer.ring_version) == ("b", 1, 3)
        assert a.learned_rows == b.rows
        assert b.learned_rows == a.rows
        assert b.server.exchanges == 0


async def test_rows_with_the_largest_meta_fit() -> None:
    rows = [
        Claim(f"{number:063}", 2**63, 2**31, Rank.LEFT, Address("::1", 65535), b"m" * 512, "x" * 63)
        for number in range(2000)
    ]
    a, b = Node("a", plain("a"), rows), Node("b", plain("b"), rows)
    async with up(a, b):
        await a.exchange_with(b)
    assert a.learned_rows == b.learned_rows == rows


@MODES
async def test_an_exchange_with_a_seed_expects_any_member(make: type) -> None:
    a, b = Node("a", make("a"), claims(2)), Node("b", make("b"), claims(3))
    async with up(a, b):
        peer = await a.exchange_with(b, name=None)
    assert peer.name == "b"


async def test_a_node_that_meets_itself_is_told_so_by_name_and_boot() -> None:
    a = Node("a", derived("a"), claims(2))
    async with up(a):
        peer = await a.exchange_with(a, name=None)
    assert (peer.name, peer.boot) == (a.name, a.boot)
    assert a.learned_rows == []


@MODES
async def test_a_question_is_answered_with_who_asked(make: type) -> None:
    a = Node("a", make("a"))
    b = Node(
        "b",
        make("b"),
        replies=lambda topic, payload, caller: f"{topic} {caller} ".encode() + payload,
    )
    async with up(a, b):
        answer = await a.client.ask(b.address, "b", "weather", b"?", deadline_s=5)
    assert answer == b"weather a ?"


async def test_a_refused_question_keeps_its_code_and_its_words() -> None:
    a, b = Node("a", derived("a")), Node("b", derived("b"))
    async with up(a, b):
        with pytest.raises(AskError, match="nobody answers about weather") as raised:
            await a.client.ask(b.address, "b", "weather", b"", deadline_s=5)
    assert raised.value.code == "unknown"


async def test_a_fault_behind_a_question_is_logged_there_and_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(topic: str, payload: bytes, caller: str) -> bytes:
        raise KeyError("secret")

    a, b = Node("a", derived("a")), Node("b", derived("b"), replies=fail)
    async with up(a, b):
        with pytest.raises(AskError) as raised:
            await a.client.ask(b.address, "b", "weather", b"", deadline_s=5)
    assert raised.value.code == "failed"
    assert "secret" not in str(raised.value)
    assert "secret" in caplog.text


async def test_questions_and_answers_have_a_size() -> None:
    largest = bytes(PAYLOAD_BYTES_MAX)
    a = Node("a", plain("a"))
    b = Node("b", plain("b"), replies=lambda topic, payload, _: payload + b"x" * (topic == "more"))
    async with up(a, b):
        assert await a.client.ask(b.address, "b", "same", largest, deadline_s=5) == largest
        for topic, payload in (("same", largest + b"x"), ("more", largest)):
            with pytest.raises(AskError) as raised:
                await a.client.ask(b.address, "b", topic, payload, deadline_s=5)
            assert raised.value.code == "too_large"


async def test_a_question_to_another_than_is_there_is_refused_in_plain_text_too() -> None:
    a, b = Node("a", plain("a")), Node("b", plain("b"), replies=lambda *_: b"mine")
    other = Node("o", plain("o", label="other"))
    async with up(a, b, other):
        with pytest.raises(AskError, match="this is b, not c") as wrong_name:
            await a.client.ask(b.address, "c", "t", b"", deadline_s=5)
        with pytest.raises(AskError, match="this is the mesh 'test'") as wrong_label:
            await other.client.ask(b.address, "b", "t", b"", deadline_s=5)
    assert {wrong_name.value.code, wrong_label.value.code} == {"refused"}


async def test_another_process_than_expected_teaches_nothing_in_plain_text_too() -> None:
    a, b = Node("a", plain("a"), claims(2)), Node("b", plain("b"), claims(3))
    async with up(a, b):
        with pytest.raises(StreamError, match="is b, not c") as raised:
            await a.exchange_with(b, name="c")
    assert raised.value.reason == "name"
    assert a.learned_rows == b.learned_rows == []


@pytest.mark.parametrize(
    ("said", "words"),
    [({"wire_version": 2}, "wire version 2, we 1"), ({"full": False}, "")],
)
async def test_another_version_is_refused_with_words(said: dict[str, int], words: str) -> None:
    a, b = Node("a", derived("a"), claims(2), said=said), Node("b", derived("b"), claims(3))
    b.said["full"] = False
    async with up(a, b):
        if words:
            with pytest.raises(StreamError, match=words):
                await a.exchange_with(b)
            assert b.counts["stream_refused", "version"] == 1
        else:
            assert (await a.exchange_with(b)).name == "b"
    assert a.learned_rows == b.learned_rows == []


async def test_another_label_is_refused_with_words() -> None:
    a, b = Node("a", plain("a"), label="other"), Node("b", plain("b"))
    async with up(a, b):
        with pytest.raises(StreamError, match="of the mesh 'other', we of 'test'") as raised:
            await a.exchange_with(b)
    assert raised.value.reason == "refused"
    assert b.counts["stream_refused", "label"] == 1


async def test_many_calls_at_a_time_share_one_channel() -> None:
    a, b = Node("a", derived("a")), Node("b", derived("b"), replies=lambda *_: b"")
    async with up(a, b), asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(a.client.ask(b.address, "b", "t", b"", deadline_s=5))
        await asyncio.sleep(0)
        assert a.client.open_channels <= 1
