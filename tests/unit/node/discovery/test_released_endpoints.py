"""Released endpoints: what a source shows no more and another one wants, and what stays without its source."""

from dataclasses import replace

from smg_node.discovery.changes import RELEASED_MS
from support.discovery.change_looks import LEAVING, NOW, had, known, look, seen, view, written


def test_what_another_source_may_want_is_let_go_and_dropped_five_seconds_later() -> None:
    entries = known(had("a"), had("b"))
    found = look(view(seen("a")), entries, contested=lambda: True)
    assert written(found) == [("release", "b")]
    assert found.next_ms == NOW + RELEASED_MS

    let_go = known(had("a"), replace(had("b"), released=True))
    waits = look(
        view(seen("a")), let_go, found.memory, now_ms=NOW + RELEASED_MS - 1, contested=lambda: True
    )
    assert written(waits) == []
    gone = look(
        view(seen("a")), let_go, waits.memory, now_ms=NOW + RELEASED_MS, contested=lambda: True
    )
    assert written(gone) == [("drop", "b")]


def test_where_no_other_source_wants_anything_it_is_dropped_at_once() -> None:
    assert written(look(view(seen("a")), known(had("a"), had("b")))) == [("drop", "b")]


def test_what_ends_or_was_removed_is_not_let_go() -> None:
    entries = known(had("a"), had("b", LEAVING), had("c", withheld=True, exists=False))
    found = look(view(seen("a")), entries, contested=lambda: True)
    assert written(found) == [("drop", "b"), ("drop", "c")]


def test_the_other_source_takes_it_however_old_its_view_is() -> None:
    entry = replace(had("b", owner="blue", own=False, heard_ms=NOW), released=True)
    found = look(view(seen("b"), whole_ms=NOW - 60_000), known(entry))
    assert written(found) == [("change", "b")]
    assert not found.ask_again
    # It may have it only then.
    kept = look(view(seen("b")), known(had("b", owner="blue", own=False)))
    assert (written(kept), dict(kept.refused)) == (
        [],
        {"b:1": "the source blue shows it as well"},
    )


def test_who_shows_it_again_has_it_again() -> None:
    found = look(view(seen("b")), known(replace(had("b"), released=True)))
    assert written(found) == [("change", "b")]


def test_what_is_kept_because_everything_is_gone_may_be_taken_by_others_meanwhile() -> None:
    found = look(view(), known(had("a"), had("b")), up=("a",), contested=lambda: True)
    assert sorted(written(found)) == [("release", "a"), ("release", "b")]
    assert found.held == ("a:1", "b:1")
    let_go = known(replace(had("a"), released=True))
    later = look(
        view(), let_go, found.memory, now_ms=NOW + 5_000, up=("a",), contested=lambda: True
    )
    assert (written(later), later.held) == ([], ("a:1",))


def test_what_stays_without_its_source_is_written_so() -> None:
    entries = known(had("a"), replace(had("b"), keep=True))
    found = look(view(seen("a"), seen("b")), entries, keep=True)
    assert written(found) == [("change", "a")]
    back = look(view(seen("a"), seen("b")), entries)
    assert written(back) == [("change", "b")]
