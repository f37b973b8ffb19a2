import asyncio
from typing import cast

import pytest

from smg_mesh.io.counters import Counters
from smg_mesh.io.effect_listener import Listener
from smg_mesh.io.event_journal import Journal
from smg_mesh.io.peer_snapshot import Memory
from smg_mesh.io.shared_state.state_interface import Replicated
from smg_mesh.swim.boot_numbers import STARTING_MS
from smg_mesh.swim.effects import (
    BootChanged,
    Effect,
    Isolated,
    Member,
    MemberChanged,
    MemberDown,
    MemberLeft,
    MemberRefuted,
    MemberSuspected,
    MemberUp,
    NewsReceived,
    Note,
    Superseded,
)
from smg_mesh.swim.messages import Address, News, Rank

THERE = Address("10.0.0.2", 7946)
B = Member("b", THERE, 7, 3, Rank.ALIVE, b"", 0, None, None, True, "")


class Shared:
    """What the state that all share is told."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        self.rights = self

    def step_down(self) -> None:
        self.heard.append("step down")

    def hear(self, news: News) -> None:
        self.heard.append(news)

    def change_boot(self, boot: int) -> None:
        self.heard.append(boot)


class World:
    def __init__(self) -> None:
        self.now_ms = 10
        self.counters = Counters()
        self.journal = Journal(wall_ms=lambda: 1)
        self.memory = Memory(None, label="test", counters=self.counters)
        self.superseded = asyncio.Event()
        self.lost = 0
        self.moved = 0
        self.shared = Shared()
        self.listener = Listener(
            self.journal,
            self.memory,
            self.counters,
            me="me",
            now_ms=lambda: self.now_ms,
            superseded=self.superseded,
            lost_one=self.lose,
            moved=self.move,
            shared=cast("Replicated", self.shared),
        )

    def lose(self) -> None:
        self.lost += 1

    def move(self) -> None:
        self.moved += 1

    def hear(self, effect: Effect) -> list[str]:
        """Return the kinds of event that it led to."""
        before = len(self.journal.events())
        self.listener.hear(effect)
        return [event.kind for event in self.journal.events()[before:]]


@pytest.mark.parametrize(
    ("effect", "kind", "kept", "lost"),
    [
        (MemberUp(B, returned=False), "member_up", True, 0),
        (MemberChanged(B, restarted=True), "member_changed", True, 0),
        (MemberSuspected(B, "why"), "member_suspect", False, 0),
        (MemberRefuted(B), "member_refuted", False, 0),
        (MemberDown(B, "why"), "member_down", True, 1),
        (MemberLeft(B), "member_left", True, 1),
    ],
)
async def test_what_happens_to_members_is_written_and_remembered(
    effect: Effect, kind: str, kept: bool, lost: int
) -> None:
    world = World()
    assert world.hear(effect) == [kind]
    assert world.memory._changed.is_set() is kept
    assert world.lost == lost
    assert world.moved == int(kept)


@pytest.mark.parametrize(
    ("after_ms", "says"),
    [
        (
            0,
            "the name 'me' is taken: a node that lives at 10.0.0.2:7946 has it; give this one a name",
        ),
        (STARTING_MS - 1, "the name 'me' is taken"),
        (STARTING_MS, "another process at 10.0.0.2:7946 goes on under this node's name 'me'"),
    ],
)
async def test_a_node_that_is_superseded_is_told_once_and_loudly(
    caplog: pytest.LogCaptureFixture, after_ms: int, says: str
) -> None:
    world = World()
    world.memory.boot_changed(7)
    world.memory._changed.clear()
    world.now_ms += after_ms
    assert world.hear(Superseded(9, THERE)) == ["superseded"]
    assert world.superseded.is_set()
    assert world.shared.heard == ["step down"]
    assert world.memory._kept.boot == (0 if "taken" in says else 7)
    assert says in caplog.text
    assert "(--name)" in caplog.text
    assert caplog.records[0].levelname == "ERROR"
    assert "10.0.0.2:7946" in caplog.text


async def test_being_cut_off_and_back_is_an_event() -> None:
    world = World()
    assert world.hear(Isolated(True)) == ["isolated"]
    assert world.hear(Isolated(False)) == ["unisolated"]


async def test_a_larger_boot_is_kept() -> None:
    world = World()
    assert world.hear(BootChanged(12)) == []
    assert world.memory._kept.boot == 12
    assert world.shared.heard == [12]
    assert world.memory._changed.is_set()


async def test_news_are_counted_and_handed_on() -> None:
    world = World()
    news = News("b", "kind", "key", 1, b"")
    assert world.hear(NewsReceived(news)) == []
    assert world.shared.heard == [news]
    assert world.counters.get("news_heard") == 1


async def test_what_is_the_drivers_does_not_come_here() -> None:
    with pytest.raises(AssertionError):
        World().hear(Note("probe_ok"))
