import asyncio

import pytest

from smg_mesh.io.event_journal import EVENTS_MAX, Journal, MemberEffect
from smg_mesh.swim.effects import (
    Member,
    MemberChanged,
    MemberDown,
    MemberLeft,
    MemberRefuted,
    MemberSuspected,
    MemberUp,
)
from smg_mesh.swim.messages import Address, Rank


def journal() -> Journal:
    return Journal(wall_ms=lambda: 1_763_000_000_000)


def member(accuser: str = "", heard_ms: int | None = 8_800) -> Member:
    return Member(
        "b", Address("10.0.0.2", 7946), 7, 3, Rank.ALIVE, b"", 0, heard_ms, 1.5, True, accuser
    )


@pytest.mark.parametrize(
    ("effect", "kind", "line"),
    [
        (MemberUp(member(), returned=False), "member_up", "is up"),
        (MemberUp(member(), returned=True), "member_up", "is back"),
        (
            MemberSuspected(member("c"), "no answer"),
            "member_suspect",
            "is suspected: no answer; last heard 1.2 s ago",
        ),
        (MemberRefuted(member()), "member_refuted", "answered the suspicion and is alive"),
        (
            MemberDown(member("me"), "no answer"),
            "member_down",
            "is dead: no answer; last heard 1.2 s ago",
        ),
        (
            MemberDown(member("c", heard_ms=None), "no answer"),
            "member_down",
            "is dead: no answer; this node never heard it directly",
        ),
        (MemberLeft(member()), "member_left", "said goodbye and left"),
        (MemberChanged(member(), restarted=True), "member_changed", "restarted"),
        (
            MemberChanged(member(), restarted=False),
            "member_changed",
            "changed its address or what it says of itself",
        ),
    ],
)
def test_a_members_life_is_told_in_lines(
    effect: MemberEffect, kind: str, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    kept = journal()
    kept.member(effect, now_ms=10_000)
    (event,) = kept.events()
    assert (event.id, event.kind, event.name) == (1, kind, "b")
    assert event.time_ms == 1_763_000_000_000
    assert event.detail["address"] == "10.0.0.2:7946"
    assert caplog.messages == [f"member b (10.0.0.2:7946) {line}"]
    level = "WARNING" if kind == "member_down" else "INFO"
    assert caplog.records[0].levelname == level
    assert caplog.records[0].__dict__["fields"]["event"] == kind


def test_silence_is_part_of_the_event() -> None:
    kept = journal()
    kept.member(MemberDown(member(), "no answer"), now_ms=10_000)
    kept.member(MemberDown(member(heard_ms=None), "no answer"), now_ms=10_000)
    first, second = kept.events()
    assert first.detail["heard_ms_ago"] == 1_200
    assert "heard_ms_ago" not in second.detail


def test_the_ring_keeps_the_newest_and_counts_on() -> None:
    kept = journal()
    for number in range(EVENTS_MAX + 10):
        kept.add("seed_failed", str(number), "text")
    events = kept.events()
    assert len(events) == EVENTS_MAX
    assert [events[0].id, events[-1].id] == [11, EVENTS_MAX + 10]


@pytest.mark.parametrize("after", [-5, 0, 1, 2, 3, 4, 5])
def test_events_after_an_id_are_those_with_a_larger_one(after: int) -> None:
    kept = journal()
    for _ in range(4):
        kept.add("joined", "me", "text")
    assert [event.id for event in kept.events(after)] == [n for n in (1, 2, 3, 4) if n > after]


async def test_a_watcher_gets_what_was_what_comes_and_the_end() -> None:
    kept = journal()
    kept.add("joined", "me", "text")
    kept.add("isolated", "me", "text")
    seen: list[str] = []

    async def watch() -> None:
        seen.extend([event.kind async for event in kept.watch(1)])

    async with asyncio.TaskGroup() as group:
        group.create_task(watch())
        await asyncio.sleep(0)
        kept.add("unisolated", "me", "text")
        await asyncio.sleep(0)
        kept.add("superseded", "me", "text")
        kept.close()
    assert seen == ["isolated", "unisolated", "superseded"]


async def test_a_watcher_that_was_slow_sees_the_gap() -> None:
    kept = journal()
    kept.add("joined", "me", "text")
    watching = kept.watch()
    first = await anext(watching)
    for _ in range(EVENTS_MAX + 5):
        kept.add("seed_failed", "x", "text")
    second = await anext(watching)
    assert (first.id, second.id) == (1, 7)
