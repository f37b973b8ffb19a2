"""Orphans: whose entries are in nobody's settings, and when that is believed."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from smg_node.discovery.orphans import (
    TAKEN_OUT_S,
    FoundEntry,
    Homes,
    Key,
    is_orphan,
    orphans,
)

CHAT, METAL = ("kubernetes", "chat"), ("dns", "metal")
ENTRY = FoundEntry(CHAT, "w-1", "a", 100)


def homes(*living: str, having: tuple[Key, ...] = (), removed: int = 0) -> Homes:
    return Homes(living, lambda key: key in having, lambda key: removed)


def test_a_source_that_somebody_has_has_no_orphans() -> None:
    assert not is_orphan(ENTRY, homes("a", "b", having=(CHAT,)))
    assert not is_orphan(ENTRY, homes("a", having=(CHAT,), removed=200))
    assert is_orphan(ENTRY, homes("a", "b", having=(METAL,)))


def test_nobody_knows_what_a_dead_node_has_unless_its_definition_was_removed_since() -> None:
    assert not is_orphan(ENTRY, homes("b"))
    assert is_orphan(ENTRY, homes("b", removed=200))
    assert not is_orphan(ENTRY, homes("b", removed=100))
    assert not is_orphan(replace(ENTRY, version=300), homes("b", removed=200))


def test_an_entry_of_no_name_is_left_alone() -> None:
    assert not is_orphan(replace(ENTRY, key=("kubernetes", "")), homes("a"))


def test_only_what_serves_stays() -> None:
    assert replace(ENTRY, keep=True).stays
    assert not ENTRY.stays
    assert not replace(ENTRY, keep=True, serves=False).stays


def test_its_time_begins_anew_when_somebody_had_it_meanwhile() -> None:
    nobody, somebody = homes("a"), homes("a", having=(CHAT,))
    first = orphans([ENTRY], {}, nobody, now_s=10)
    assert (dict(first.since_s), first.due) == ({CHAT: 10}, [])
    assert orphans([ENTRY], first.since_s, nobody, now_s=10 + TAKEN_OUT_S).due == [ENTRY]
    between = orphans([ENTRY], first.since_s, somebody, now_s=40)
    assert dict(between.since_s) == {}
    again = orphans([ENTRY], between.since_s, nobody, now_s=50)
    assert orphans([ENTRY], again.since_s, nobody, now_s=100).due == []


NODES = st.sets(st.sampled_from("abc"), min_size=1)
STEPS = st.lists(st.tuples(st.integers(1, 40), NODES, st.sets(st.sampled_from("abc"))), max_size=30)


@given(STEPS, st.sampled_from("abc"))
def test_nothing_is_given_up_that_a_living_node_had_within_a_minute(
    steps: list[tuple[int, set[str], set[str]]], by: str
) -> None:
    """Nodes live and die, and have the source or not; whoever lives and has it reports."""
    now_s, had_s = 0.0, 0.0
    since: Mapping[Key, float] = {}
    entry = replace(ENTRY, by=by)
    for wait_s, living, having in steps:
        now_s += wait_s
        home = bool(living & having)
        seen = orphans([entry], since, homes(*living, having=(CHAT,) if home else ()), now_s=now_s)
        if home:
            had_s = now_s
        if seen.due:
            assert by in living
            assert now_s - had_s >= TAKEN_OUT_S
        since = seen.since_s
