from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from smg_mesh.io.discovery.seed_search import ExchangeFailedError
from smg_mesh.io.stream_sessions import JOIN_MS, TOPICS_MAX, Answers, StreamSessions
from smg_mesh.io.streams import AskError, StreamClient, StreamError, Turns
from smg_mesh.swim.effects import Effect, Isolated
from smg_mesh.swim.messages import Address, Claim, Rank
from smg_mesh.sync.exchange.exchange_frames import Holdings
from smg_mesh.sync.exchange.exchange_machine import Exchange, ExchangeError, Opening, Rows, Step
from support.state.exchanges import converse, opening
from support.state.fake_pieces import FakePieces

THERE = Address("10.0.0.2", 7946)
B = Claim("b", 5, 0, Rank.ALIVE, THERE, b"")


class Core:
    name = "me"
    boot = 7

    def __init__(self) -> None:
        self.heard: list[Claim] = []

    def digest(self) -> bytes:
        return b"digest!!"

    def rows(self) -> Sequence[Claim]:
        return [Claim("me", 7, 0, Rank.ALIVE, Address("10.0.0.1", 7946), b"")]

    def handle_rows(self, rows: Sequence[Claim], *, now_ms: int) -> list[Effect]:
        self.heard += rows
        return [Isolated(False)]


class Client:
    """A peer called b that answers as the test says, and holds `pieces`."""

    def __init__(self) -> None:
        self.peer = Opening("b", 5, "test", bytes(16), full=False, ring_version=3)
        self.pieces: FakePieces | None = None
        self.heard: Opening | None = None
        self.error: StreamError | None = None
        self.calls: list[tuple[object, ...]] = []

    async def ping(self, address: Address, name: str, boot: int, *, deadline_ms: int) -> bool:
        self.calls.append((address, name, boot, deadline_ms))
        return True

    async def exchange(
        self,
        address: Address,
        name: str | None,
        machine: Exchange,
        learned: Callable[[tuple[Claim, ...]], None],
        *,
        turns: Turns,
        deadline_ms: int,
    ) -> Opening:
        (heard,) = machine.begin()
        assert isinstance(heard, Opening)
        self.heard = heard
        self.calls.append((address, name, heard.full, deadline_ms))
        if self.error is not None:
            raise self.error
        there = Exchange(self.peer, lambda: [B], opener=False, pieces=self.pieces)
        learned(tuple(converse(machine, there).learned_by_opener))
        assert machine.peer is not None
        return machine.peer

    async def ask(
        self, address: Address, name: str, topic: str, payload: bytes, *, deadline_s: float
    ) -> bytes:
        return f"{address} {name} {topic} {payload!r} {deadline_s}".encode()


class Rings:
    version = 4

    def __init__(self) -> None:
        self.levelled: list[tuple[object, ...]] = []

    async def level(self, name: str, address: Address, version: int) -> None:
        self.levelled.append((name, address, version))


class World:
    def __init__(self, pieces: FakePieces | None = None) -> None:
        self.core = Core()
        self.client = Client()
        self.rings = Rings()
        self.done: list[Effect] = []
        self.met: list[tuple[str, bool, bool]] = []
        self.pieces = pieces or FakePieces()
        self.holds = True
        self.here = StreamSessions(
            self.core,
            label="test",
            exchange_ms=10_000,
            now_ms=lambda: 1,
            step=lambda step: self.done.extend(step()),
            met=self.meet,
            pieces=pieces,
            held=lambda: self.holds,
        )

    def meet(self, name: str, /, *, full: bool, held: bool) -> None:
        self.met.append((name, full, held))

    def connected(self) -> StreamSessions:
        self.here.connect(cast(StreamClient, self.client), self.rings)
        return self.here


@pytest.fixture
def world() -> World:
    return World()


async def test_an_exchange_with_a_member_teaches_the_core(world: World) -> None:
    assert await world.connected().exchange("b", THERE, "join")
    assert world.client.calls == [(THERE, "b", True, 10_000)]
    assert world.core.heard == [B]
    assert world.done == [Isolated(False)]
    assert world.met == [("b", False, True)]
    assert world.rings.levelled == [("b", THERE, 3)]


@pytest.mark.parametrize(
    ("why", "full"),
    [
        ("join", True),
        ("told", True),
        ("stall", True),
        ("heal", True),
        ("periodic", False),
        ("digest", False),
    ],
)
async def test_who_missed_something_asks_for_everything(world: World, why: str, full: bool) -> None:
    await world.connected().exchange("b", THERE, why)
    assert world.client.calls[0][2] is full


async def test_an_exchange_that_fails_says_so_and_meets_nobody(world: World) -> None:
    world.client.error = StreamError("unreachable", "nobody there")
    assert not await world.connected().exchange("b", THERE, "join")
    with pytest.raises(ExchangeFailedError, match="nobody there"):
        await world.here.join(THERE)
    assert world.met == []


async def test_a_seed_is_asked_without_a_name_and_in_less_time(world: World) -> None:
    assert await world.connected().join(THERE)
    assert world.client.calls == [(THERE, None, True, JOIN_MS)]
    assert world.met == [("b", False, True)]


async def test_a_seed_that_is_this_node_is_nobody_met(world: World) -> None:
    world.client.peer = Opening("me", 7, "test", bytes(16), full=False)
    assert not await world.connected().join(THERE)
    assert world.met == []
    assert world.rings.levelled == []


async def test_without_a_client_every_call_fails(world: World) -> None:
    assert not await world.here.ping("b", THERE, 5, deadline_ms=1)
    assert not await world.here.exchange("b", THERE, "join")
    with pytest.raises(ExchangeFailedError):
        await world.here.join(THERE)
    with pytest.raises(AskError):
        await world.here.ask("b", THERE, "topic", b"", deadline_s=1)


async def test_pings_and_questions_go_through(world: World) -> None:
    assert await world.connected().ping("b", THERE, 5, deadline_ms=9)
    assert world.client.calls == [(THERE, "b", 5, 9)]
    answer = await world.here.ask("b", THERE, "topic", b"x", deadline_s=2)
    assert answer == b"10.0.0.2:7946 b topic b'x' 2"


# ── The serving side ─────────────────────────────────────────────────────────


async def test_before_it_is_open_the_serving_side_asks_for_patience(world: World) -> None:
    answers = Answers()
    assert not await answers.ping("me", 7)
    with pytest.raises(ExchangeError, match="starting"):
        answers.exchange()
    with pytest.raises(AskError, match="starting"):
        await answers.answer("topic", b"", "b")
    answers.learned((B,), world.client.peer)
    answers.ended(world.here.answering())
    assert answers.turns is answers.turns
    assert world.core.heard == []
    answers.open(world.here)
    assert answers.turns is world.here.turns
    assert await answers.ping("me", 7)
    assert not await answers.ping("me", 8)
    assert not await answers.ping("b", 7)


async def test_the_serving_side_speaks_for_the_core(world: World) -> None:
    answers = Answers()
    answers.open(world.connected())
    machine = answers.exchange()
    step: Step = machine.receive(Opening("b", 5, "test", bytes(16), full=True))
    mine, rows = step.send
    assert isinstance(mine, Opening)
    assert (mine.name, mine.boot, mine.label, mine.ring_version) == ("me", 7, "test", 4)
    assert mine.digest == b"digest!!" + bytes(8)
    assert isinstance(rows, Rows)
    assert rows.claims == tuple(world.core.rows())
    answers.learned((B,), world.client.peer)
    assert world.core.heard == [B]
    assert world.met == [], "that comes at the end"
    assert machine.receive(Rows((B,), last=True)).done
    answers.ended(machine)
    assert world.met == [("b", False, True)]


async def test_what_this_node_tells_itself_is_no_meeting(world: World) -> None:
    machine = world.here.answering()
    assert machine.receive(Opening("me", 7, "test", bytes(16), full=True)).done
    world.here.ended(machine)
    assert world.met == []


# ── Replicated state ─────────────────────────────────────────────────────────


async def test_the_opening_says_what_is_held_of_the_state() -> None:
    world = World(FakePieces("settings/1"))
    world.pieces.history = b"one"
    world.client.pieces = FakePieces("settings/1")
    assert await world.connected().exchange("b", THERE, "periodic")
    said = world.client.heard
    assert said is not None
    assert said.digest == b"digest!!" + world.pieces.digest()
    assert (said.pieces, said.stale, said.history, said.held) == (True, False, b"one", True)


@pytest.mark.parametrize(("why", "full"), [("digest", False), ("join", True)])
async def test_pieces_are_exchanged_and_the_end_says_if_it_was_everything(
    why: str, full: bool
) -> None:
    world = World(FakePieces("settings/1"))
    theirs = world.client.pieces = FakePieces("settings/2")
    world.client.peer = opening("b", digest=bytes(8) + theirs.digest(), held=False)
    assert await world.connected().exchange("b", THERE, why)
    assert world.pieces.documents() == theirs.documents()
    assert world.met == [("b", full, False)]


async def test_until_it_holds_the_clusters_state_it_asks_for_everything() -> None:
    world = World(FakePieces())
    world.holds = False
    await world.connected().exchange("b", THERE, "periodic")
    world.holds = True
    await world.here.exchange("b", THERE, "periodic")
    assert [call[2] for call in world.client.calls] == [True, False]


async def test_the_serving_side_exchanges_pieces_and_says_how_it_ended() -> None:
    world = World(FakePieces("settings/1"))
    theirs = FakePieces("settings/2")
    answers = Answers()
    answers.open(world.connected())
    machine = answers.exchange()
    mine = opening("b", digest=b"digest!!" + theirs.digest(), full=True)
    said = converse(Exchange(mine, list, opener=True, pieces=theirs), machine)
    answers.ended(machine)
    assert any(isinstance(frame, Holdings) for _, frame in said.frames)
    assert world.pieces.documents() == theirs.documents()
    assert world.met == [("b", True, True)]


async def test_each_topic_has_one_who_answers(world: World) -> None:
    async def reply(payload: bytes, caller: str) -> bytes:
        return payload + caller.encode()

    world.here.on("topic", reply)
    assert await world.here.answer("topic", b"x", "b") == b"xb"
    with pytest.raises(AskError, match="knows nothing about 'other'"):
        await world.here.answer("other", b"", "b")
    with pytest.raises(ValueError, match="answered already"):
        world.here.on("topic", reply)
    for wrong in ("", "x" * 65):
        with pytest.raises(ValueError, match="topic"):
            world.here.on(wrong, reply)
    for number in range(TOPICS_MAX - 1):
        world.here.on(f"topic {number}", reply)
    with pytest.raises(ValueError, match="one topic too many"):
        world.here.on("the last straw", reply)


def test_the_real_client_has_what_is_called() -> None:
    real: Any = StreamClient
    for name in ("ping", "exchange", "ask"):
        mine = set(getattr(Client, name).__annotations__)
        assert mine == set(getattr(real, name).__annotations__)
