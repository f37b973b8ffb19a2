import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, cast

import pytest

from smg_mesh.config import PROFILES
from smg_mesh.escrow.limit_model import Life
from smg_mesh.io.driver import Step
from smg_mesh.io.event_journal import Journal
from smg_mesh.io.gossip_bridge import GossipBridge
from smg_mesh.io.network.side_datagrams import read_letter, write_letter
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.shared_state.state_interface import Replicated
from smg_mesh.io.stream_sessions import StreamSessions
from smg_mesh.swim.effects import Effect, NewsReceived, OpenExchange
from smg_mesh.swim.messages import Address, Claim, Rank
from smg_mesh.swim.swim_core import Identity, Swim
from smg_mesh.swim.wire import sender_tag
from smg_mesh.sync.replica_effects import DigestIs, OpenExchanges, SpreadRumor


class RightsHeard:
    def __init__(self) -> None:
        self.members_told: list[tuple[Sequence[Life], Sequence[str]]] = []
        self.letters: list[tuple[bytes, str]] = []

    def members(self, alive: Sequence[Life], left: Sequence[str]) -> None:
        self.members_told.append((alive, left))

    def hear(self, content: bytes, sender: str) -> None:
        self.letters.append((content, sender))


class Shared:
    def __init__(self) -> None:
        self.living: list[Sequence[tuple[str, int]]] = []
        self.rights = RightsHeard()

    def set_members(self, living: Sequence[tuple[str, int]]) -> None:
        self.living.append(living)


class World:
    """A core with one other member, b, and what is carried to it."""

    def __init__(self) -> None:
        self.shared = Shared()
        me = Identity("a", Address("10.0.0.1", 7946), 5)
        self.swim = Swim(me, PROFILES["lan"], Random(1))
        self.effects: list[Effect] = self.swim.start(now_ms=1_000)
        self.journal = Journal(wall_ms=lambda: 1)
        self.posted: list[tuple[bytes, Address]] = []
        self.conversations = StreamSessions(
            self.swim,
            label="test",
            exchange_ms=1_000,
            now_ms=lambda: 1_000,
            step=self.step,
            met=lambda *_, **__: None,
        )
        self.carrier = GossipBridge(
            cast("Replicated", self.shared),
            self.swim,
            seals=Keyring.insecure("test"),
            journal=self.journal,
            now_ms=lambda: 1_000,
            step=self.step,
            nobody=lambda: True,
            conversations=self.conversations,
            expect=3,
            post=lambda packet, to: self.posted.append((packet, to)),
        )

    def step(self, step: Step) -> None:
        self.effects = step()

    def hear(self, name: str, rank: Rank = Rank.ALIVE) -> None:
        claim = Claim(name, 9, 0, rank, Address("10.0.0.2", 7946), b"")
        self.step(lambda: self.swim.handle_rows([claim], now_ms=1_000))

    def of(self, kind: type) -> list[Any]:
        return [effect for effect in self.effects if isinstance(effect, kind)]


def test_what_is_said_becomes_a_rumor() -> None:
    world = World()
    world.carrier.carry(SpreadRumor("d", "settings/1:1", b"content"))
    assert world.of(NewsReceived) == []  # it is this node's own
    assert world.swim._parts.voice.rumors.waiting()


@pytest.mark.parametrize("wish", [OpenExchanges("push", count=3), OpenExchanges("gap", name="b")])
def test_conversations_are_opened_with_members(wish: OpenExchanges) -> None:
    world = World()
    world.hear("b")
    # The first meeting opens one by itself.
    world.step(lambda: world.swim.handle_exchange_end("b", ok=True, now_ms=1_000))
    world.carrier.carry(wish)
    (opened,) = world.of(OpenExchange)
    assert (opened.name, opened.why) == ("b", wish.why)


def test_the_digest_rides_on_packets() -> None:
    world = World()
    before = world.swim._parts.voice.digest
    world.carrier.carry(DigestIs(b"12345678"))
    assert world.swim._parts.voice.digest != before
    world.carrier.carry(DigestIs(bytes(8)))
    assert world.swim._parts.voice.digest == before


async def test_who_lives_is_told_once_for_many_changes() -> None:
    world = World()
    world.hear("b")
    world.hear("c")
    world.hear("d", Rank.DEAD)
    for _ in range(5):
        world.carrier.members_changed()
    assert world.shared.living == []
    await asyncio.sleep(0)
    assert world.shared.living == [[("a", 5), ("b", 9), ("c", 9)]]
    world.carrier.members_changed()
    await asyncio.sleep(0)
    assert len(world.shared.living) == 2


def test_what_an_operator_wants_to_know_is_an_event() -> None:
    world = World()
    world.carrier.happened("document_full", "settings/1 is full", {"document": "settings/1"})
    world.carrier.happened("state_joined", "all is here", {"ms": 5})
    kinds = [(event.kind, event.name) for event in world.journal.events()]
    assert kinds == [("document_full", "a"), ("state_joined", "a")]


# ── Letters ──────────────────────────────────────────────────────────────────


def test_a_letter_goes_to_where_a_member_is() -> None:
    world = World()
    world.hear("b")
    world.carrier.send_letter("b", b"rights")
    world.carrier.send_letter("nobody", b"rights")
    (packet, to), *others = world.posted
    assert not others
    assert to == Address("10.0.0.2", 7946)
    assert read_letter(packet) == (sender_tag("a"), b"rights")


def test_the_dead_are_written_to_and_those_who_left_are_not() -> None:
    world = World()
    world.hear("b")
    world.hear("b", Rank.DEAD)
    world.carrier.send_letter("b", b"rights")
    assert len(world.posted) == 1
    world.hear("b", Rank.LEFT)
    world.carrier.send_letter("b", b"rights")
    assert len(world.posted) == 1


def test_a_letter_of_a_member_is_heard_under_its_name_and_one_of_a_stranger_is_not() -> None:
    world = World()
    world.hear("b")
    world.carrier.letter_came(write_letter("b", 9, b"rights"))
    world.carrier.letter_came(write_letter("stranger", 9, b"rights"))
    assert world.shared.rights.letters == [(b"rights", "b")]


async def test_rights_hear_who_lives_who_left_and_who_was_forgotten() -> None:
    world = World()
    world.hear("b")
    world.hear("c")
    told = world.shared.rights.members_told
    world.carrier.members_changed()
    await asyncio.sleep(0)
    assert told[-1] == ([Life("a", 5), Life("b", 9), Life("c", 9)], [])
    world.hear("b", Rank.LEFT)
    world.hear("c", Rank.LEFT)
    world.carrier.members_changed()
    await asyncio.sleep(0)
    assert told[-1] == ([Life("a", 5)], ["b", "c"])
    world.step(lambda: world.swim.forget("b", now_ms=1_000))
    world.carrier.members_changed()
    await asyncio.sleep(0)
    assert told[-1] == ([Life("a", 5)], ["c", "b"])
    claim = Claim("b", 10, 0, Rank.ALIVE, Address("10.0.0.2", 7946), b"")
    world.step(lambda: world.swim.handle_rows([claim], now_ms=1_000))
    world.carrier.members_changed()
    await asyncio.sleep(0)
    assert told[-1] == ([Life("a", 5), Life("b", 10)], ["c"])
