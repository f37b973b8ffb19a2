from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from smg_node.config.worker_url import parse_worker_url
from smg_node.discovery.dns.answers import RECORDS_MAX
from smg_node.discovery.dns.evidence import Evidence
from smg_node.discovery.dns.names import Round, Seen
from smg_node.discovery.sighting import Sighting, View

HALF_A, HALF_B = ("10.0.0.1:1", "10.0.0.2:1"), ("10.0.0.3:1", "10.0.0.4:1")


def round_of(endpoints: Iterable[str], *, host: str = "h", unanswered: Iterable[str] = ()) -> Round:
    return Round(
        {one: Seen(Sighting(parse_worker_url(one)), host) for one in endpoints},
        5.0,
        frozenset(unanswered),
    )


def evidence(*down: str) -> Evidence:
    return Evidence(lambda endpoint: endpoint in down)


def shown(view: View) -> list[str]:
    return sorted(view.sightings)


def test_addresses_shown_in_turn_by_halves_are_all_kept() -> None:
    found = evidence()
    for turn in range(200):
        view = found.answered(round_of((HALF_A, HALF_B)[turn % 2]), now_ms=1000 + 5000 * turn)
        assert len(view.sightings) == (2 if turn == 0 else 4)


def test_an_endpoint_is_gone_after_three_answers_and_fifteen_seconds() -> None:
    found = evidence()
    found.answered(round_of((*HALF_A, *HALF_B)), now_ms=1000)
    assert len(found.answered(round_of(HALF_A), now_ms=6000).sightings) == 4
    assert len(found.answered(round_of(HALF_A), now_ms=11_000).sightings) == 4
    assert len(found.answered(round_of(HALF_A), now_ms=20_999).sightings) == 4, "not 15 s yet"
    assert shown(found.answered(round_of(HALF_A), now_ms=21_000)) == sorted(HALF_A)


def test_time_alone_is_no_evidence() -> None:
    found = evidence()
    found.answered(round_of((*HALF_A, *HALF_B)), now_ms=1000)
    found.answered(round_of(HALF_A), now_ms=61_000)
    assert len(found.answered(round_of(HALF_A), now_ms=121_000).sightings) == 4
    assert shown(found.answered(round_of(HALF_A), now_ms=181_000)) == sorted(HALF_A)


def test_what_probers_call_down_is_gone_at_once() -> None:
    found = evidence(HALF_B[0])
    found.answered(round_of((*HALF_A, *HALF_B)), now_ms=1000)
    assert shown(found.answered(round_of(HALF_A), now_ms=6000)) == sorted((*HALF_A, HALF_B[1]))


def test_an_answer_with_nothing_is_shown_at_once_and_undone_by_the_next() -> None:
    found = evidence()
    found.answered(round_of((*HALF_A, *HALF_B)), now_ms=1000)
    view = found.answered(round_of(()), now_ms=6000)
    assert (shown(view), view.whole_ms) == ([], 6000)
    # What was there before counts on: one answer with half of it is no evidence of the other half.
    assert len(found.answered(round_of(HALF_A), now_ms=11_000).sightings) == 4


def test_nothing_is_missing_of_a_target_that_nobody_answered_for() -> None:
    found = evidence(*HALF_A, *HALF_B)
    both = round_of(HALF_A, host="a")
    found.answered(Round({**both.seen, **round_of(HALF_B, host="b").seen}, 5.0), now_ms=1000)
    for turn in range(1, 20):
        view = found.answered(
            round_of(HALF_A, host="a", unanswered=["b"]), now_ms=1000 + 5000 * turn
        )
        assert len(view.sightings) == 4
    assert shown(found.answered(both, now_ms=200_000)) == sorted(HALF_A)


def test_no_answer_keeps_all_and_says_since_when() -> None:
    found = evidence()
    before = found.answered(round_of(HALF_A), now_ms=1000)
    for now_ms in (6000, 300_000):
        view = found.unanswered("timed out", now_ms=now_ms)
        assert (view.sightings, view.whole_ms) == (before.sightings, 1000)
        assert (view.trouble, view.failing_since_ms) == ("timed out", 6000)
    after = found.answered(round_of(HALF_A), now_ms=301_000)
    assert (after.trouble, after.failing_since_ms, after.whole_ms) == ("", 0, 301_000)


def test_before_the_first_answer_nothing_is_whole() -> None:
    view = evidence().unanswered("timed out", now_ms=1000)
    assert (dict(view.sightings), view.whole_ms) == ({}, 0)


def test_a_watcher_that_begins_takes_nothing_for_gone_that_is_registered() -> None:
    known = {one: parse_worker_url(one) for one in HALF_B}
    found = Evidence(lambda endpoint: False, known=known)
    for turn in range(3):
        view = found.answered(round_of(HALF_A), now_ms=1000 + 5000 * turn)
        assert len(view.sightings) == 4
    assert shown(found.answered(round_of(HALF_A), now_ms=16_000)) == sorted(HALF_A)


def test_of_two_families_one_is_there_until_nothing_is_left_of_it() -> None:
    found = evidence()
    v4, v6 = round_of(["10.0.0.1:1"]), round_of(["[fd00::1]:1"])
    assert shown(found.answered(v4, now_ms=1000)) == ["10.0.0.1:1"]
    for now_ms in (6000, 11_000, 16_000):
        assert shown(found.answered(v6, now_ms=now_ms)) == ["10.0.0.1:1"]
    assert shown(found.answered(v6, now_ms=21_000)) == ["[fd00::1]:1"]
    assert shown(found.answered(v4, now_ms=26_000)) == ["[fd00::1]:1"]
    assert shown(found.answered(v6, now_ms=31_000)) == ["[fd00::1]:1"]


def test_there_are_never_more_endpoints_than_records_that_are_taken() -> None:
    found = evidence()
    first = [f"10.0.{one >> 8}.{one & 255}:1" for one in range(RECORDS_MAX)]
    found.answered(round_of(first), now_ms=1000)
    view = found.answered(round_of([*first, "10.9.0.1:1", "10.9.0.2:1"]), now_ms=6000)
    assert (len(view.sightings), view.unusable[0].why) == (
        RECORDS_MAX,
        "2 endpoints beyond 4096",
    )


_V4 = [f"10.0.0.{one}:1" for one in range(1, 5)]
_V6 = [f"[fd00::{one}]:1" for one in range(1, 4)]
_ANSWER = st.frozensets(st.sampled_from(_V4)) | st.frozensets(st.sampled_from(_V6))
_STEP = st.tuples(
    st.integers(5000, 60_000),
    st.none() | _ANSWER,
    st.frozensets(st.sampled_from([*_V4, *_V6])),
)


@given(st.lists(_STEP, max_size=30))
def test_in_any_order_of_answers_nothing_is_dropped_without_evidence(
    steps: list[tuple[int, frozenset[str] | None, frozenset[str]]],
) -> None:
    down: frozenset[str] = frozenset()
    found = Evidence(lambda endpoint: endpoint in down)
    now_ms, missing = 1000, dict[str, tuple[int, int]]()
    held: set[str] = set()
    for after_ms, answer, down in steps:
        now_ms += after_ms
        if answer is None:
            assert found.unanswered("no", now_ms=now_ms).whole_ms < now_ms
            continue
        view = found.answered(round_of(sorted(answer)), now_ms=now_ms)
        assert view.whole_ms == now_ms
        for one in held - answer:
            since, count = missing.get(one, (now_ms, 0))
            missing[one] = (since, count + 1)
        for one in answer:
            missing.pop(one, None)
        gone = {
            one
            for one in held - answer
            if one in down or (missing[one][1] >= 3 and now_ms - missing[one][0] >= 15_000)
        }
        held -= gone
        for one in gone:
            missing.pop(one)
        assert held <= set(view.sightings) or not answer
        held |= set(view.sightings)
        assert len({one.startswith("[") for one in held}) <= 1
        if not answer:
            assert not view.sightings
