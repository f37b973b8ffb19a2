"""Changes: the table of what follows from a view, row by row, and what holds for any inputs."""

from dataclasses import replace
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from smg_node.discovery.changes import (
    FLIP_APART_MS,
    SETTLE_MS,
    VIEW_AGE_MAX_MS,
    Memory,
    Reason,
)
from smg_node.discovery.known import Dropped, Known
from smg_node.discovery.sighting import Endpoint, SightingState
from support.discovery.change_looks import (
    LEAVING,
    NOW,
    READY,
    UNREADY,
    had,
    known,
    look,
    seen,
    view,
    written,
)

# ── Seen ─────────────────────────────────────────────────────────────────────


def test_what_is_seen_and_unknown_is_added_at_once_in_any_state_but_leaving() -> None:
    found = look(view(seen("a"), seen("b", UNREADY), seen("c", LEAVING)), {})
    assert written(found) == [("add", "a"), ("add", "b")]


def test_what_is_as_it_was_is_not_written() -> None:
    found = look(view(seen("a"), seen("b", UNREADY)), known(had("a"), had("b", UNREADY)))
    assert found.writes == ()
    assert found.next_ms is None


def test_another_spec_or_instance_is_a_change() -> None:
    found = look(
        view(seen("a", spec="?priority=9"), seen("b", instance="u2")), known(had("a"), had("b"))
    )
    assert written(found) == [("change", "a"), ("change", "b")]


def test_readiness_flips_at_once_then_seldom_and_the_last_one_always() -> None:
    down = look(view(seen("a", UNREADY)), known(had("a")))
    assert written(down) == [("flip", "a")]

    again = look(view(seen("a")), known(had("a", UNREADY)), down.memory, now_ms=NOW + 100)
    assert again.writes == ()
    assert again.next_ms == NOW + FLIP_APART_MS

    later = look(
        view(seen("a"), whole_ms=NOW + FLIP_APART_MS),
        known(had("a", UNREADY)),
        again.memory,
        now_ms=NOW + FLIP_APART_MS,
    )
    assert written(later) == [("flip", "a")]


def test_one_that_flips_back_in_time_is_not_written_and_waits_all_the_same() -> None:
    down = look(view(seen("a", UNREADY)), known(had("a")))
    same = look(view(seen("a", UNREADY)), known(had("a", UNREADY)), down.memory, now_ms=NOW + 1)
    back = look(view(seen("a")), known(had("a", UNREADY)), same.memory, now_ms=NOW + 2)
    assert (same.writes, back.writes) == ((), ())


def test_leaving_is_said_at_once_and_for_good() -> None:
    down = look(view(seen("a", UNREADY)), known(had("a")))
    ends = look(view(seen("a", LEAVING)), known(had("a", UNREADY)), down.memory, now_ms=NOW + 1)
    assert written(ends) == [("flip", "a")]
    assert look(view(seen("a")), known(had("a", LEAVING))).writes == ()
    assert written(look(view(seen("a", instance="u2")), known(had("a", LEAVING)))) == [
        ("change", "a")
    ]
    unnamed = look(view(seen("a", instance="")), known(had("a", LEAVING, "")))
    assert written(unnamed) == [("flip", "a")]


# ── Operators, and other sources ─────────────────────────────────────────────


def test_what_an_operator_removed_stays_away_while_it_is_the_same() -> None:
    away = had("a", withheld=True, exists=False)
    found = look(view(seen("a")), known(away))
    assert found.writes == ()
    assert "an operator removed it" in found.refused["a:1"]
    assert written(look(view(seen("a", instance="u2")), known(away))) == [("add", "a")]
    assert written(look(view(seen("a")), known(replace(away, exists=True)))) == [("add", "a")]
    assert written(look(view(), known(away), up=("a",))) == [("drop", "a")]


def test_what_an_operator_removed_is_remembered_as_long_as_everything_else_is_held() -> None:
    away, over = had("b", withheld=True, exists=False), had("c", LEAVING, withheld=True)
    entries = known(had("a"), away, over)
    typo = look(view(), entries, up=("a",))
    assert typo.held == ("a:1",)
    assert written(typo) == [("drop", "c")]
    back = look(view(seen("a"), seen("b"), whole_ms=NOW + 9), entries, typo.memory, now_ms=NOW + 9)
    assert "an operator removed it" in back.refused["b:1"]

    late = NOW + 30_000
    asked = look(view(whole_ms=late), known(had("a"), away), typo.memory, now_ms=late, up=("a",))
    assert sorted(written(asked)) == [("drop", "a"), ("drop", "b")]


def test_what_an_operator_removed_is_taken_over_from_a_source_that_goes() -> None:
    entries = known(had("a", owner="apple", withheld=True, exists=False))
    kept = look(view(seen("a")), entries)
    assert (kept.writes, dict(kept.refused)) == ((), {"a:1": "the source apple shows it as well"})
    lost = look(view(seen("a")), entries, is_orphan=lambda owner: owner == "apple")
    assert written(lost) == [("change", "a")]
    assert lost.writes[0].sighting is None
    assert "an operator removed it" in lost.refused["a:1"]
    assert written(look(view(seen("a", instance="u2")), entries, is_orphan=bool)) == [("add", "a")]


def test_of_two_sources_the_first_by_name_has_an_endpoint() -> None:
    found = look(view(seen("a"), seen("b")), known(had("a", owner="apple"), had("b", owner="zoo")))
    assert written(found) == [("change", "b")]
    assert found.refused == {"a:1": "the source apple shows it as well"}
    assert look(view(seen("c")), known(had("a", owner="apple"), had("c"))).writes == ()


def test_an_endpoint_of_a_source_that_is_in_no_settings_any_more_is_taken_over() -> None:
    entries = known(had("a", owner="apple"), had("b", owner="berry"))
    found = look(view(seen("a"), seen("b")), entries, is_orphan=lambda owner: owner == "apple")
    assert written(found) == [("change", "a")]
    assert found.refused == {"b:1": "the source berry shows it as well"}


# ── Gone ─────────────────────────────────────────────────────────────────────


def test_what_is_gone_and_not_up_is_dropped_at_once() -> None:
    assert written(look(view(seen("b")), known(had("a"), had("b")))) == [("drop", "a")]


def test_what_leaves_is_dropped_at_once_though_it_is_up() -> None:
    found = look(view(), known(had("a", LEAVING)), up=("a",))
    assert written(found) == [("drop", "a")]


def test_what_is_gone_and_up_is_dropped_half_a_second_later() -> None:
    entries = known(had("a"), had("b"))
    first = look(view(seen("b"), gone=("a",)), entries, up=("a", "b"))
    assert first.writes == ()
    assert first.next_ms == NOW + SETTLE_MS
    second = look(view(seen("b")), entries, first.memory, now_ms=NOW + SETTLE_MS, up=("a", "b"))
    assert written(second) == [("drop", "a")]


def test_all_that_goes_one_after_the_other_within_half_a_second_is_held() -> None:
    entries = known(had("a"), had("b"))
    first = look(view(seen("b"), gone=("a",)), entries, up=("a", "b"))
    both = look(view(gone=("a", "b")), entries, first.memory, now_ms=NOW + 300, up=("b",))
    assert both.writes == ()
    assert both.held == ("a:1", "b:1")
    assert both.held_until_ms == NOW + 300 + 30_000


def test_all_gone_is_held_asked_again_and_believed() -> None:
    entries = known(had("a"), had("b"), had("c", LEAVING))
    held = look(view(), entries, up=("b",))
    assert written(held) == [("drop", "c")]
    assert not held.ask_again

    due = NOW + 30_000
    asked = look(view(whole_ms=NOW + 1), entries, held.memory, now_ms=due, up=("b",))
    assert asked.held == ("a:1", "b:1")
    assert asked.ask_again

    sure = look(view(whole_ms=due), entries, asked.memory, now_ms=due + 9, up=("a", "b"))
    assert sorted(written(sure)) == [("drop", "a"), ("drop", "b"), ("drop", "c")]


def test_what_is_held_goes_when_the_last_one_is_called_down_and_stays_when_it_is_seen() -> None:
    entries = known(had("a"), had("b"))
    held = look(view(), entries, up=("b",))
    down = look(view(), entries, held.memory, now_ms=NOW + 1_000)
    assert written(down) == [("drop", "a"), ("drop", "b")]
    back = look(view(seen("a"), seen("b")), entries, held.memory, now_ms=NOW + 1_000)
    assert (back.writes, back.memory.empty_ms) == ((), 0)


# ── Old views ────────────────────────────────────────────────────────────────


def test_a_view_that_is_not_whole_or_old_says_nothing() -> None:
    entries = known(had("b"))
    for whole_ms in (0, NOW - VIEW_AGE_MAX_MS - 1):
        found = look(view(seen("a"), whole_ms=whole_ms, gone=("b",)), entries)
        assert (found.writes, found.next_ms) == ((), None)
    since = look(view(seen("a"), whole_ms=NOW - 5), entries, since_ms=NOW - 4)
    assert since.writes == ()


def test_an_old_view_neither_takes_away_nor_changes_nor_brings_back_what_others_wrote() -> None:
    old = view(seen("b"), seen("c"), seen("d", instance="u9"), whole_ms=NOW - 10)
    entries = known(
        had("a", heard_ms=NOW - 5, own=False), had("b", UNREADY, heard_ms=NOW - 5, own=False)
    )
    dropped = {"c:1": Dropped("u1", NOW - 5), "d:1": Dropped("u1", NOW - 5)}
    found = look(old, entries, dropped=dropped)
    assert written(found) == [("add", "d")]
    assert found.ask_again

    later = look(replace(old, whole_ms=NOW), entries, dropped=dropped)
    assert sorted(written(later)) == [
        ("add", "c"),
        ("add", "d"),
        ("drop", "a"),
        ("flip", "b"),
    ]


def test_what_was_just_written_here_goes_when_the_source_says_expressly_that_it_ended() -> None:
    entry = known(had("a", heard_ms=NOW - 1))
    old = view(seen("b"), whole_ms=NOW - 10)
    assert written(look(old, entry)) == [("add", "b")]
    assert written(look(replace(old, gone=frozenset({"a:1"})), entry)) == [
        ("add", "b"),
        ("drop", "a"),
    ]


# ── Limits ───────────────────────────────────────────────────────────────────


def test_as_many_as_fit_are_added_those_first_that_wait_for_longest() -> None:
    first = look(view(seen("b"), seen("c")), {}, room=1)
    assert written(first) == [("add", "b")]
    assert "16384 workers already" in first.refused["c:1"]
    second = look(
        view(seen("a"), seen("b"), seen("c")), known(had("b")), first.memory, room=1, now_ms=NOW + 9
    )
    assert written(second) == [("add", "c")]
    assert list(second.refused) == ["a:1"]


def test_additions_come_first() -> None:
    found = look(view(seen("a", UNREADY), seen("z")), known(had("a"), had("b")))
    assert written(found) == [("add", "z"), ("flip", "a"), ("drop", "b")]


# ── Whatever the inputs ──────────────────────────────────────────────────────

HOSTS: Final = ("a", "b", "c", "d")
STATES: Final = st.sampled_from((READY, UNREADY, LEAVING))
INSTANCES: Final = st.sampled_from(("", "u1", "u2"))
SIGHTINGS: Final = st.dictionaries(st.sampled_from(HOSTS), st.tuples(STATES, INSTANCES))
ENTRIES: Final = st.dictionaries(
    st.sampled_from(HOSTS),
    st.tuples(
        STATES,
        INSTANCES,
        st.sampled_from(("apple", "chat", "zoo")),
        st.sampled_from((1, NOW - 5, NOW)),
        st.booleans(),
        st.booleans(),
    ),
)


@given(
    SIGHTINGS,
    ENTRIES,
    st.sets(st.sampled_from(HOSTS)),
    st.sets(st.sampled_from(HOSTS)),
    st.sampled_from((0, NOW - 10, NOW)),
)
def test_the_same_inputs_give_the_same_answer_and_none_without_evidence(
    shown: dict[str, tuple[SightingState, str]],
    entries: dict[str, tuple[SightingState, str, str, int, bool, bool]],
    gone: set[str],
    up: set[str],
    whole_ms: int,
) -> None:
    now_seen = view(
        *(seen(host, *said) for host, said in shown.items()),
        whole_ms=whole_ms,
        gone=tuple(gone - set(shown)),
    )
    had_before = known(
        *(
            had(host, state, instance, owner=owner, heard_ms=heard, own=own, withheld=withheld)
            for host, (state, instance, owner, heard, own, withheld) in entries.items()
        )
    )
    found = look(now_seen, had_before, up=tuple(up))
    turned = replace(now_seen, sightings=dict(reversed(list(now_seen.sightings.items()))))
    other = look(turned, dict(reversed(list(had_before.items()))), up=tuple(up))

    assert sorted(written(found)) == sorted(written(other))
    assert found.next_ms == other.next_ms
    assert len({one.endpoint for one in found.writes}) == len(found.writes)
    for one in found.writes:
        assert whole_ms
        if one.reason is Reason.DROP:
            assert one.known is not None
            assert one.endpoint not in now_seen.sightings
            assert one.known.owner == "chat"
            expressly = one.endpoint in now_seen.gone and one.known.own
            assert one.known.heard_ms <= whole_ms or expressly
        else:
            assert one.sighting is not None
            assert now_seen.sightings[one.endpoint].url == one.sighting.url


@given(st.lists(st.tuples(SIGHTINGS, st.integers(1, 4_000)), max_size=12))
def test_whatever_a_source_shows_in_turn_the_registry_is_at_the_end_what_it_shows(
    steps: list[tuple[dict[str, tuple[SightingState, str]], int]],
) -> None:
    entries: dict[Endpoint, Known] = {}
    memory, now_ms = Memory(), NOW
    last: dict[str, tuple[SightingState, str]] = {}

    def step(shown: dict[str, tuple[SightingState, str]]) -> None:
        nonlocal memory
        now_seen = view(*(seen(host, *said) for host, said in shown.items()), whole_ms=now_ms)
        found = look(now_seen, entries, memory, now_ms=now_ms)
        memory = found.memory
        for one in found.writes:
            if one.sighting is None:
                del entries[one.endpoint]
            else:
                sight = one.sighting
                host = one.endpoint.removesuffix(":1")
                entries[one.endpoint] = had(host, sight.state, sight.instance, heard_ms=now_ms)

    for last, apart_ms in steps:
        step(last)
        now_ms += apart_ms
    for _ in range(3):
        now_ms += FLIP_APART_MS
        step(last)
    for host, (state, instance) in last.items():
        entry = entries.get(f"{host}:1")
        if entry is None:
            assert state is LEAVING
        else:
            assert entry.instance == instance
            assert entry.state is state or entry.state is LEAVING
    assert {host for host in HOSTS if f"{host}:1" in entries} <= set(last)
