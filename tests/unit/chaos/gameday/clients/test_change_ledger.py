"""What a node may say of what operators did: the last thing that is known everywhere, and whatever came since."""

from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.gameday.clients.change_ledger import Ledger


def test_what_nobody_changed_is_as_it_was() -> None:
    ledger = Ledger(2.0)
    ledger.know("w", value=True, now_s=0.0)
    assert ledger.allows("w", value=True, asked_s=100.0)
    assert not ledger.allows("w", value=False, asked_s=100.0)


def test_a_change_counts_from_its_beginning_and_the_old_until_it_must_be_known() -> None:
    ledger = Ledger(2.0)
    ledger.know("k", "old", now_s=0.0)
    assert not ledger.allows("k", "new", asked_s=9.0)
    ledger.begin("k", "new")
    assert ledger.allows("k", "new", asked_s=9.0)
    assert ledger.allows("k", "old", asked_s=9.0)
    ledger.done("k", now_s=10.0)
    assert ledger.allows("k", "old", asked_s=11.9)
    assert not ledger.allows("k", "old", asked_s=12.0)
    assert ledger.allows("k", "new", asked_s=12.0)
    assert not ledger.allows("k", "another", asked_s=11.0)


def test_what_was_refused_never_counted() -> None:
    ledger = Ledger(2.0)
    ledger.know("k", "old", now_s=0.0)
    ledger.begin("k", "new")
    ledger.undone("k")
    assert not ledger.allows("k", "new", asked_s=1.0)
    assert ledger.allows("k", "old", asked_s=100.0)


def test_of_changes_that_follow_each_other_soon_each_may_be_seen() -> None:
    ledger = Ledger(2.0)
    ledger.know("k", 0, now_s=0.0)
    for value, done_s in ((1, 10.0), (2, 10.5), (3, 11.0)):
        ledger.begin("k", value)
        ledger.done("k", done_s)
    assert [ledger.allows("k", value, asked_s=11.5) for value in range(4)] == [True] * 4
    assert [ledger.allows("k", value, asked_s=12.6) for value in range(4)] == [
        False,
        False,
        True,
        True,
    ]
    assert [ledger.allows("k", value, asked_s=13.0) for value in range(4)] == [
        False,
        False,
        False,
        True,
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0.0, 100.0)), max_size=30))
def test_the_latest_is_never_a_lie_and_one_that_nobody_wrote_always_is(
    steps: list[tuple[int, float]],
) -> None:
    ledger = Ledger(2.0)
    ledger.know("k", 0, now_s=0.0)
    now_s, latest = 0.0, 0
    for value, apart_s in steps:
        now_s += apart_s
        ledger.begin("k", value)
        ledger.done("k", now_s)
        latest = value
        # Whoever was asked a minute ago at most is still judged as it should be.
        for asked_s in (now_s, now_s + 50.0, max(0.0, now_s - 1.9)):
            assert ledger.allows("k", latest, asked_s)
            assert not ledger.allows("k", 9, asked_s)
