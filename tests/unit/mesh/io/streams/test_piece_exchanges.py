"""Exchanges of pieces over real streams: large ones, slow ones, and peers that hang up or never read."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

import grpc.aio
import pytest

from smg_mesh.io.streams import StreamError, Turns
from smg_mesh.io.streams.frames import decode_frame, encode_frame
from smg_mesh.io.streams.service import EXCHANGE
from smg_mesh.sync.exchange.exchange_frames import (
    BATCH_BYTES_MAX,
    Asked,
    Declined,
    Done,
    Frame,
    Holdings,
    Request,
    Update,
)
from smg_mesh.sync.exchange.piece_interface import REGISTERS, PieceState
from support.mesh.mesh_streams import Node, derived, impostor, plain, stranger, until, up
from support.state.exchanges import claims, opening
from support.state.fake_pieces import FakePieces, names, union

T = TypeVar("T")


def node(name: str, pieces: FakePieces | None, **given: Any) -> Node:
    """Return a node that holds pieces and wants no more than it lacks."""
    said = {"full": False, **given.pop("said", {})}
    return Node(name, plain(name), pieces=pieces, said=said, **given)


def held(there: Node) -> FakePieces:
    """Return what a node holds."""
    assert isinstance(there.pieces, FakePieces)
    return there.pieces


@pytest.mark.parametrize("secure", [True, False])
async def test_both_nodes_hold_the_same_afterwards(secure: bool) -> None:
    make = derived if secure else plain
    mine = FakePieces(*names(30), prefix="a", keys=20, size=100)
    theirs = FakePieces(*names(50)[20:], prefix="b", keys=20, size=100)
    theirs.put("settings/1", "big", bytes(700_000))
    theirs.put(REGISTERS, "load/b", b"1")
    both = union(mine, theirs)
    a = Node("a", make("a"), claims(1200), pieces=mine)
    b = Node("b", make("b"), claims(5), pieces=theirs)
    async with up(a, b):
        assert (await a.exchange_with(b)).name == "b"
    assert mine.documents() == theirs.documents() == both
    assert mine.held[REGISTERS] == theirs.held[REGISTERS]
    assert len(b.learned_rows) == 1200
    assert b.ended_with == [("a", True)]


@pytest.mark.parametrize("new_opens", [True, False])
async def test_a_node_without_pieces_hears_nothing_of_them(new_opens: bool) -> None:
    new = Node("n", plain("n"), claims(3), pieces=FakePieces(*names(5)))
    old = Node("o", plain("o"), claims(2))
    async with up(new, old):
        one, other = (new, old) if new_opens else (old, new)
        await one.exchange_with(other)
        await until(lambda: bool(other.ended_with))
        assert other.ended_with == [(one.name, False)]
    assert len(new.learned_rows) == 2
    assert len(old.learned_rows) == 3


async def test_an_exchange_that_nothing_came_of_is_no_end() -> None:
    b = node("b", FakePieces(*names(3)))
    async with up(b), stranger(b) as channel:
        call = channel.stream_stream(EXCHANGE)()
        await call.write(encode_frame(opening("s", pieces=True)))
        await call.read()
        call.cancel()
        await until(lambda: b.server.exchanges == 0)
    assert b.ended_with == []


# ── Slow ─────────────────────────────────────────────────────────────────────


class OneByOne(FakePieces):
    """Says that its pieces are large, so that each is asked for by itself."""

    def holdings(self, *, full: bool) -> Sequence[PieceState]:
        return [replace(one, size_bytes=BATCH_BYTES_MAX) for one in super().holdings(full=full)]


class SlowTurns(Turns):
    """Each piece of work takes a while."""

    async def take(self, work: Callable[[], T]) -> T:
        await asyncio.sleep(0.02)
        return await super().take(work)


@pytest.mark.parametrize("slow", ["opener", "answerer"])
async def test_what_goes_on_may_take_longer_than_the_deadline_of_a_frame(slow: str) -> None:
    a, b = node("a", FakePieces()), node("b", OneByOne(*names(30)))
    (a if slow == "opener" else b).turns = SlowTurns()
    loop = asyncio.get_running_loop()
    async with up(a, b, frame_s=0.5):
        began_s = loop.time()
        await a.exchange_with(b, deadline_ms=500)
        took_s = loop.time() - began_s
    assert took_s > 0.5
    assert held(a).documents() == held(b).documents()


async def test_who_stops_in_the_middle_is_given_up_at_the_deadline() -> None:
    async def stopped(_requests: object, context: Any) -> None:
        await context.read()
        await context.write(encode_frame(opening("b", pieces=True, digest=b"d" * 16)))
        await asyncio.sleep(60)

    a = node("a", FakePieces(*names(3)), digest=b"d" * 16)
    async with up(a), impostor(stopped) as address:
        a.address, there = address, node("b", None, address=address)
        with pytest.raises(StreamError) as raised:
            await a.exchange_with(there, deadline_ms=300)
        assert raised.value.reason == "deadline"
        assert a.client.open_channels == 0


async def test_who_asks_for_ever_is_cut_in_the_end() -> None:
    b = node("b", FakePieces(*names(3)))
    async with up(b, exchange_s=0.5), stranger(b) as channel:
        call = channel.stream_stream(EXCHANGE)()
        await call.write(encode_frame(opening("s", pieces=True)))
        asked = encode_frame(Request((Asked("settings/1", 0, b"\x80"),)))
        code = None
        while code is None:
            try:
                await call.read()
                await call.write(asked)
                await asyncio.sleep(0.01)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                code = await call.code()
        assert code in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.INTERNAL)
    assert b.counts["stream_refused", "slow"] == 1


async def test_for_who_never_reads_little_is_built_and_it_is_cut() -> None:
    noise = FakePieces()
    for name in names(16):
        noise.put(name, "noise", Random(name).randbytes(500_000))
    b = node("b", noise)
    narrow = {"http2.lookahead_bytes": 1024, "http2.bdp_probe": 0}
    async with up(b, frame_s=0.3), stranger(b, **narrow) as channel:
        call = channel.stream_stream(EXCHANGE)()
        await call.write(encode_frame(opening("s", pieces=True)))
        asked = tuple(Asked(name, 0, b"\x80") for name in names(16))
        await call.write(encode_frame(Request(asked)))
        await until(lambda: b.counts["stream_refused", "slow"] == 1)
        await until(lambda: b.server.exchanges == 0)
    assert len(noise.built) <= 2


# ── Hung up ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cut", range(5))
async def test_a_caller_that_hangs_up_after_any_frame_has_merged_whole_pieces_at_most(
    cut: int,
) -> None:
    b = node("b", FakePieces("settings/1", "settings/2"))
    plain_update = FakePieces("settings/1", prefix="s").missing("settings/1", 0, b"\x80")
    frames: list[Frame] = [
        opening("s", pieces=True),
        Request((Asked("settings/1", 0, b"\x80"), Asked("settings/2", 0, b"\x80"))),
        Update("settings/1", 0, b"", plain_update, last=True),
        Update("settings/2", 0, b"", bytes(65_536), last=False),
    ]
    async with up(b), stranger(b) as channel:
        call = channel.stream_stream(EXCHANGE)()
        for frame in frames[:cut]:
            await call.write(encode_frame(frame))
        await until(lambda: len(held(b).merged) >= (cut > 2))
        call.cancel()
        await until(lambda: b.server.exchanges == 0)
    assert [name for _, name, _ in held(b).merged] == ["settings/1"] * (cut > 2)
    assert b.ended_with == []


async def test_after_a_server_that_hung_up_the_next_exchange_goes_on() -> None:
    theirs = FakePieces(*names(40))
    mine = FakePieces()

    async def half(_requests: object, context: Any) -> None:
        real = node("b", theirs).machine(opener=False)
        for _ in range(2):
            step = real.receive(decode_frame(await context.read()))
            sent = list(step.send)
            while step.more:
                step = real.proceed()
                sent += step.send
            for frame in sent[:9]:
                await context.write(encode_frame(frame))

    a, b = node("a", mine), node("b", theirs)
    async with up(a, b), impostor(half) as address:
        with pytest.raises(StreamError):
            await a.exchange_with(node("b", None, address=address), deadline_ms=2_000)
        got = len(mine.merged)
        assert 0 < got < 16
        await a.exchange_with(b)
    assert mine.documents() == theirs.documents()
    assert len(mine.merged) == 40, "what was there is not sent again"


# ── What cannot be taken ─────────────────────────────────────────────────────


async def test_the_opener_names_a_piece_that_it_cannot_take() -> None:
    a, b = node("a", FakePieces()), node("b", FakePieces(*names(30)))
    held(a).poisoned = frozenset({"settings/7"})
    async with up(a, b):
        with pytest.raises(StreamError, match=r"sent settings/7, which cannot") as raised:
            await a.exchange_with(b)
    assert raised.value.reason == "state"
    assert a.counts["stream_failed", "state"] == 1
    assert len(held(a).documents()) == 29
    assert b.ended_with == [("a", False)]


async def test_the_answerer_names_it_too_and_tells_the_opener() -> None:
    a, b = node("a", FakePieces(*names(30))), node("b", FakePieces())
    held(b).poisoned = frozenset({"settings/7"})
    async with up(a, b):
        with pytest.raises(StreamError, match=r"the caller sent settings/7, which") as raised:
            await a.exchange_with(b)
    assert raised.value.reason == "refused"
    assert b.counts["stream_refused", "state"] == 1
    assert len(held(b).documents()) == 29
    assert b.ended_with == []


async def test_another_process_than_expected_is_told_nothing_and_makes_nobody_forget() -> None:
    a, b = node("a", FakePieces(*names(3))), node("b", FakePieces(*names(5)))
    held(a).stale, held(a).history, held(b).history = True, b"one", b"one"
    async with up(a, b):
        with pytest.raises(StreamError, match="is b, not c"):
            await a.exchange_with(b, name="c")
    assert held(a).forgotten == 0
    assert held(a).built == held(b).built == []


GARBAGE = [
    Done(),
    Declined("a", 1),
    Holdings((), last=True),
    Request(()),
    Update("a", 0, b"", b"", last=True),
]


@pytest.mark.parametrize("said", GARBAGE, ids=lambda frame: type(frame).__name__)
async def test_frames_out_of_turn_end_it(said: Frame) -> None:
    b = node("b", FakePieces(*names(3)), rows=claims(2))
    async with up(b), stranger(b) as channel:
        call = channel.stream_stream(EXCHANGE)()
        await call.write(encode_frame(opening("s", full=True, pieces=True)))
        await call.write(encode_frame(said))
        with suppress(grpc.aio.AioRpcError):
            while isinstance(received := await call.read(), bytes):
                decode_frame(received)
        assert await call.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert b.counts["stream_refused", "order"] == 1


# ── Turns ────────────────────────────────────────────────────────────────────


async def test_one_piece_of_work_is_done_in_a_turn_of_the_loop_whoever_wants_it() -> None:
    turns = Turns()
    turn = 0
    done: list[int] = []

    async def count() -> None:
        nonlocal turn
        while len(done) < 60:
            turn += 1
            await asyncio.sleep(0)

    async def work() -> None:
        for _ in range(10):
            await turns.take(lambda: done.append(turn))

    async with asyncio.TaskGroup() as group:
        group.create_task(count())
        for _ in range(6):
            group.create_task(work())
    assert len(done) == 60
    assert len(set(done)) == 60


async def test_work_that_fails_leaves_the_turn_to_the_next() -> None:
    turns = Turns()

    def fail() -> None:
        raise KeyError("fault")

    with pytest.raises(KeyError):
        await turns.take(fail)
    assert await turns.take(lambda: 5) == 5


async def test_many_peers_at_a_time_get_all_of_it() -> None:
    hub = node("hub", FakePieces(*names(64), keys=5))
    others = [node(f"n{number}", FakePieces()) for number in range(8)]
    async with up(hub, *others), asyncio.TaskGroup() as group:
        for other in others:
            group.create_task(other.exchange_with(hub))
    for other in others:
        assert held(other).documents() == held(hub).documents()
